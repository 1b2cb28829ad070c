#include "nn/padding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

at::Tensor mask_of(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kLong));
  return at::stack(tensors);
}

TEST(Padding, PositionsAreCountedPerSequence) {
  const at::Tensor mask = mask_of({{0, 0, 1, 1}, {1, 1, 1, 1}});
  EXPECT_TRUE(positions_from(mask, 2, 4).equal(mask_of({{0, 0, 0, 1}, {0, 1, 2, 3}})));
  EXPECT_TRUE(positions_from(mask, 2, 1).equal(mask_of({{1}, {3}})));
}

TEST(Padding, QueriesSeeTokensNotAfterThemAndPaddingSeesItself) {
  const at::Tensor mask = mask_of({{0, 1, 1}, {1, 1, 1}});
  const at::Tensor padded = mask_of({{1, 0, 0}, {0, 1, 0}, {0, 1, 1}});
  const at::Tensor whole = mask_of({{1, 0, 0}, {1, 1, 0}, {1, 1, 1}});

  const at::Tensor all = causal_mask(mask, 2, 3);
  ASSERT_EQ(all.sizes().vec(), (std::vector<int64_t>{2, 1, 3, 3}));
  EXPECT_EQ(all.scalar_type(), at::kBool);
  EXPECT_TRUE(all[0][0].to(at::kLong).equal(padded));
  EXPECT_TRUE(all[1][0].to(at::kLong).equal(whole));
  // The last two tokens, the first one being in a cache.
  EXPECT_TRUE(causal_mask(mask, 2, 2).equal(all.narrow(2, 1, 2)));
}

TEST(Padding, AWindowCountsColumnsPaddingIncluded) {
  const at::Tensor window = mask_of({{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 1, 1}});
  const at::Tensor free = window_mask(4, 4, 2, at::kCPU);
  ASSERT_EQ(free.sizes().vec(), (std::vector<int64_t>{1, 1, 4, 4}));
  EXPECT_TRUE(free[0][0].to(at::kLong).equal(window));
  // The last token, three being in a cache; and one token each.
  EXPECT_TRUE(window_mask(1, 4, 2, at::kCPU).equal(free.narrow(2, 3, 1)));
  EXPECT_TRUE(window_mask(3, 3, 1, at::kCPU)[0][0].to(at::kLong).equal(at::eye(3, at::kLong)));

  const at::Tensor mask = mask_of({{0, 0, 1, 1}, {1, 1, 1, 1}});
  const at::Tensor padded = mask_of({{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 1}});
  const at::Tensor both = causal_mask(mask, 2, 4, 2);
  EXPECT_TRUE(both[0][0].to(at::kLong).equal(padded));
  EXPECT_TRUE(both[1][0].to(at::kLong).equal(window));
  EXPECT_TRUE(causal_mask(mask, 2, 4, 4).equal(causal_mask(mask, 2, 4)));
}

TEST(Padding, AMaskOfAnotherShapeIsRefused) {
  EXPECT_THROW(positions_from(mask_of({{1, 1}}), 1, 3), InputError);
  EXPECT_THROW(causal_mask(mask_of({{1, 1}}), 2, 2), InputError);
  EXPECT_THROW(causal_mask(at::ones({3}, at::kLong), 1, 3), InputError);
}

}  // namespace
}  // namespace shardproof
