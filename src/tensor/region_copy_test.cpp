#include "tensor/region_copy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

at::Tensor counted(at::IntArrayRef shape) {
  return at::arange(c10::multiply_integers(shape), at::kDouble).view(shape);
}

at::Tensor values(std::vector<double> numbers) { return at::tensor(numbers, at::kDouble); }

TEST(RegionCopy, TakesIntervalsOfSeveralDims) {
  const at::Tensor local = counted({4, 5});  // row r, column c: 5 r + c

  const at::Tensor part = take(local, whole_region({4, 5}), {{{0, 1}, {2, 4}}, {{1, 2}, {3, 5}}});

  EXPECT_TRUE(at::equal(part, values({1, 3, 4, 11, 13, 14, 16, 18, 19}).view({3, 3})));
}

TEST(RegionCopy, FindsGlobalPositionsInAnUnorderedShard) {
  const at::Tensor local = values({6, 7, 2, 3});
  const Region held{{{6, 8}, {2, 4}}};

  EXPECT_TRUE(at::equal(take(local, held, {{{2, 4}, {6, 7}}}), values({2, 3, 6})));
  EXPECT_TRUE(at::equal(take(local, held, {{{7, 8}}}), values({7})));
}

TEST(RegionCopy, TakeGivesMemoryOfItsOwn) {
  const at::Tensor local = counted({4});
  const at::Tensor part = take(local, whole_region({4}), whole_region({4}));
  part.zero_();

  EXPECT_TRUE(at::equal(local, values({0, 1, 2, 3})));
}

TEST(RegionCopy, PutWritesOrAddsInPlace) {
  const at::Tensor local = at::ones({6}, at::kDouble);
  const Region held{{{10, 16}}};

  put(local, held, values({5, 6, 7}), {{{11, 12}, {14, 16}}});
  EXPECT_TRUE(at::equal(local, values({1, 5, 1, 1, 6, 7})));
  put(local, held, values({10}), {{{11, 12}}}, CopyMode::kAdd);
  EXPECT_TRUE(at::equal(local, values({1, 15, 1, 1, 6, 7})));
}

TEST(RegionCopy, CopiesBetweenShardsCutInOtherPlaces) {
  const at::Tensor from = values({4, 5, 0, 1, 2});
  const at::Tensor to = at::zeros({4}, at::kDouble);

  copy_region({to, {{{0, 1}, {2, 5}}}}, {from, {{{4, 6}, {0, 3}}}}, {{{0, 1}, {2, 3}, {4, 5}}});

  EXPECT_TRUE(at::equal(to, values({0, 2, 0, 4})));
}

TEST(RegionCopy, ScalarsAndEmptyPartsWork) {
  const at::Tensor scalar = at::scalar_tensor(3.0, at::kDouble);

  EXPECT_EQ(take(scalar, {}, {}).item<double>(), 3.0);
  EXPECT_EQ(take(counted({4, 5}), whole_region({4, 5}), {{}, {{0, 5}}}).sizes(),
            at::IntArrayRef({0, 5}));
}

TEST(RegionCopy, RefusesWhatIsNotHeld) {
  const at::Tensor local = counted({4});

  EXPECT_THROW(take(local, {{{0, 5}}}, {{{0, 1}}}), ContractError);
  EXPECT_THROW(take(local, {{{2, 6}}}, {{{0, 1}}}), ContractError);
  EXPECT_THROW(put(local, {{{0, 4}}}, counted({3}), {{{0, 2}}}), ContractError);
}

}  // namespace
}  // namespace shardproof
