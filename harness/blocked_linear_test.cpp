#include "harness/blocked_linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/rng.h"
#include "harness/twin.h"

namespace shardproof {
namespace {

at::Tensor drawn(std::vector<int64_t> shape, const std::string& name) {
  const CounterRng draw(7, name);
  at::Tensor tensor = at::empty(shape, at::kDouble);
  auto* values = tensor.mutable_data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = draw.normal(i);
  return tensor;
}

// The output, and the gradients of input, weight and bias, of a sum weighted by `g`.
struct Results {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
};
template <class Function>
Results results_of(at::ScalarType type, const Function& function) {
  const at::Tensor x = drawn({2, 3, 7}, "x").to(type).requires_grad_();
  const at::Tensor w = drawn({5, 7}, "w").to(type).requires_grad_();
  const at::Tensor b = drawn({5}, "b").to(type).requires_grad_();
  const at::Tensor output = function(x, w, b);
  const at::Tensor weighted = (output * drawn({2, 3, 5}, "g").to(type)).sum();
  weighted.backward();
  return {output.detach(), {x.grad(), w.grad(), b.grad()}};
}

const LinearBlocks kBlocks{
    .in = {{4, 7}, {0, 2}, {2, 4}}, .out = {{2, 5}, {0, 2}}, .rows = {{3, 6}, {1, 3}, {0, 1}}};

TEST(BlockedLinear, IsLinearWithItsGradients) {
  const Results plain = results_of(
      at::kDouble, [](const auto& x, const auto& w, const auto& b) { return at::linear(x, w, b); });
  const Results blocked = results_of(at::kDouble, [](const auto& x, const auto& w, const auto& b) {
    return blocked_linear(x, w, b, kBlocks);
  });
  EXPECT_LT((plain.output - blocked.output).norm().item<double>(), 1e-14);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(blocked.gradients[i].sizes(), plain.gradients[i].sizes());
    EXPECT_LT((plain.gradients[i] - blocked.gradients[i]).norm().item<double>(), 1e-13) << i;
  }
}

// 256 + 1 - 256 in bfloat16, whose numbers above 256 are 2 apart.
TEST(BlockedLinear, RoundsPartialSumsInTheGivenOrder) {
  const at::Tensor x = at::tensor({256., 1., -256.}, at::kDouble).to(at::kBFloat16).view({1, 3});
  const at::Tensor w = at::ones({1, 3}, at::kBFloat16);
  const auto sum = [&](const Blocks& in) {
    return blocked_linear(x, w, {}, {.in = in, .out = {{0, 1}}, .rows = {{0, 1}}}).item<double>();
  };
  EXPECT_EQ(sum({{0, 3}}), 1);
  EXPECT_EQ(sum({{0, 2}, {2, 3}}), 0);
  EXPECT_EQ(sum({{2, 3}, {0, 1}, {1, 2}}), 1);
}

TEST(BlockedLinear, DrawnBlocksCoverTheWidthOnce) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Blocks blocks = drawn_blocks(11, 4, CounterRng(seed, "test"), 0);
    ASSERT_EQ(blocks.size(), 4u);
    std::vector<int> covered(11);
    for (const Interval& block : blocks)
      for (int64_t i = block.begin; i < block.end; ++i) ++covered[i];
    EXPECT_EQ(covered, std::vector<int>(11, 1));
  }
  EXPECT_EQ(drawn_blocks(2, 4, CounterRng(1, "test"), 0).size(), 2u);
  EXPECT_NE(drawn_blocks(11, 4, CounterRng(1, "test"), 0),
            drawn_blocks(11, 4, CounterRng(2, "test"), 0));
}

}  // namespace
}  // namespace shardproof
