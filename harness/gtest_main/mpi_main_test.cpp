#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "harness/gtest_main/test_world.h"

namespace shardproof {
namespace {

int64_t ranks_counted(Communicator& world) {
  const at::Tensor one = at::ones({1}, at::kLong);
  world.all_reduce(one, one, ReduceOp::kSum, {"", "one", "test"}).wait();
  return one.item<int64_t>();
}

TEST(TestWorld, JoinsAllRanks) {
  const CommPtr world = test_world();
  EXPECT_EQ(ranks_counted(*world), world->size());
}

TEST(TestWorld, IsMadeForEachTest) {
  static std::weak_ptr<Communicator> before;
  EXPECT_TRUE(before.expired());
  before = test_world();
  EXPECT_EQ(ranks_counted(*test_world()), test_world()->size());
}

}  // namespace
}  // namespace shardproof
