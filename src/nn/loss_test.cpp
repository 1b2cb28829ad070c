#include "nn/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

TEST(Loss, LabelsAreShiftedLeftAndCounted) {
  const at::Tensor labels = at::tensor({1, 2, 3, 4, -100, 6}, at::kLong).view({2, 3});
  const at::Tensor shifted = shift_labels(labels);
  EXPECT_TRUE(at::equal(shifted, at::tensor({2, 3, -100, -100, 6, -100}, at::kLong).view({2, 3})));
  EXPECT_EQ(count_valid(shifted), 3);
}

TEST(Loss, SumsOverValidTokens) {
  // Two equal logits: each valid token costs log 2, but for one that is certain by a gap of log 3.
  at::Tensor logits = at::zeros({1, 4, 2}, at::kDouble);
  logits[0][1][0] = std::log(3.0);
  logits.requires_grad_();
  const at::Tensor labels = at::tensor({1, 0, -100, 0}, at::kLong).view({1, 4});

  const at::Tensor loss = cross_entropy_sum(logits, labels);
  loss.backward();

  EXPECT_EQ(loss.scalar_type(), at::kDouble);
  EXPECT_NEAR(loss.item<double>(), 2 * std::log(2.0) + std::log(4.0 / 3.0), 1e-15);
  const at::Tensor expected =
      at::tensor({.5, -.5, -.25, .25, 0., 0., -.5, .5}, at::kDouble).view({1, 4, 2});
  EXPECT_TRUE(at::allclose(logits.grad(), expected, 1e-14, 1e-15));
}

TEST(Loss, WithoutAValidTokenIsZeroWithAGraph) {
  const at::Tensor logits = testing::values({2, 3, 5}, 1).requires_grad_();

  const at::Tensor loss = cross_entropy_sum(logits, at::full({2, 3}, kIgnoredLabel, at::kLong));
  loss.backward();

  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_TRUE(at::equal(logits.grad(), at::zeros({2, 3, 5}, at::kDouble)));
}

TEST(Loss, HalfTypesAreComputedInFloat32) {
  const at::Tensor logits = testing::values({2, 3, 5}, 1).to(at::kBFloat16);
  const at::Tensor labels = at::tensor({1, 4, 0, 2, -100, 3}, at::kLong).view({2, 3});

  const at::Tensor loss = cross_entropy_sum(logits, labels);

  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.item<float>(), cross_entropy_sum(logits.to(at::kFloat), labels).item<float>());
}

TEST(Loss, LabelOutsideTheVocabularyIsRefused) {
  const at::Tensor logits = at::zeros({1, 1, 5});
  EXPECT_THROW(cross_entropy_sum(logits, at::full({1, 1}, 5, at::kLong)), InputError);
  EXPECT_THROW(cross_entropy_sum(logits, at::full({1, 1}, -1, at::kLong)), InputError);
  EXPECT_THROW(cross_entropy_sum(logits, at::zeros({1, 2}, at::kLong)), ContractError);
}

}  // namespace
}  // namespace shardproof
