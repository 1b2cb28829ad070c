#include "nn/parameter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

Parameter matrix() { return Parameter({2, 3}, {Cut::plain(2), Cut{}}); }

TEST(Parameter, PlacedWholeSharesStorageBetweenKeptAndView) {
  Parameter parameter = matrix();
  parameter.place_whole(at::kDouble);

  parameter.kept().fill_(1.5);

  EXPECT_TRUE(parameter.view().is_leaf());
  EXPECT_TRUE(parameter.view().requires_grad());
  EXPECT_FALSE(parameter.kept().requires_grad());
  EXPECT_EQ(parameter.view().detach().sum().item<double>(), 9.0);
  EXPECT_EQ(parameter.held(), whole_region({2, 3}));
}

TEST(Parameter, KeepsTheStorageThatItIsGiven) {
  Parameter parameter = matrix();
  at::Tensor kept = at::zeros({1, 3}, at::kDouble);
  at::Tensor view = at::zeros({2, 3}, at::kDouble);

  parameter.place(kept, {{{1, 2}}, {{0, 3}}}, view, whole_region({2, 3}));
  kept.fill_(2.0);
  view.fill_(3.0);

  EXPECT_EQ(parameter.kept()[0][2].item<double>(), 2.0);
  EXPECT_EQ(parameter.view()[1][2].item<double>(), 3.0);
}

TEST(Parameter, FrozenOneNeedsNoGradient) {
  Parameter parameter = matrix();
  parameter.requires_grad = false;

  parameter.place_whole(at::kFloat);

  EXPECT_FALSE(parameter.view().requires_grad());
}

TEST(Parameter, RefusesWhatDoesNotFit) {
  const at::Tensor whole = at::zeros({2, 3});
  const Region region = whole_region({2, 3});
  EXPECT_THROW(Parameter({2, 3}, {Cut::plain(2)}), ContractError);
  EXPECT_THROW(Parameter({2, 3}, {Cut::plain(2), Cut::plain(4)}), ContractError);
  Parameter parameter = matrix();
  EXPECT_THROW(parameter.place(whole, region, whole.to(at::kDouble), region), ContractError);
  EXPECT_THROW(parameter.place(whole, region, at::zeros({1, 3}), region), ContractError);
  EXPECT_THROW(parameter.place(whole, {{{0, 2}}}, whole, region), ContractError);
  EXPECT_THROW(parameter.name(), ContractError);
  parameter.place(whole, region, whole, region);
  EXPECT_THROW(parameter.place(whole, region, whole, region), ContractError);
}

}  // namespace
}  // namespace shardproof
