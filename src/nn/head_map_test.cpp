#include "nn/head_map.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

using Heads = std::vector<int64_t>;
constexpr AttentionHeads kNineThree = {.queries = 9, .keys = 3, .head_dim = 4};

TEST(HeadMap, HeadsFollowTheHeldIntervalsInOrder) {
  EXPECT_EQ(heads_of({{8, 16}, {0, 4}}, 4), (Heads{2, 3, 0}));
  EXPECT_EQ(heads_of({}, 4), Heads{});
  EXPECT_THROW(heads_of({{0, 6}}, 4), ContractError);
}

TEST(HeadMap, QueriesFindTheirKeys) {
  EXPECT_EQ(key_positions(kNineThree, {0, 1, 2, 3, 4, 5}, {0, 1}), (Heads{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(key_positions(kNineThree, {8}, {2}), Heads{0});
  EXPECT_EQ(key_positions(kNineThree, {2, 3}, {1, 0}), (Heads{1, 0}));
  EXPECT_EQ(key_positions(kNineThree, {}, {}), Heads{});
}

TEST(HeadMap, MissingKeyIsRefused) {
  EXPECT_THROW(key_positions(kNineThree, {2, 3}, {0}), ContractError);
  EXPECT_THROW(key_positions(kNineThree, {0}, {}), ContractError);
}

TEST(HeadMap, UniformMeansEqualRunsInOrder) {
  EXPECT_TRUE(is_uniform({0, 0, 1, 1}, 2));
  EXPECT_TRUE(is_uniform({0, 1}, 2));
  EXPECT_TRUE(is_uniform({}, 0));
  EXPECT_FALSE(is_uniform({0, 1, 1}, 2));
  EXPECT_FALSE(is_uniform({1, 0}, 2));
  EXPECT_FALSE(is_uniform({0, 0}, 3));
  EXPECT_FALSE(is_uniform({}, 1));
}

}  // namespace
}  // namespace shardproof
