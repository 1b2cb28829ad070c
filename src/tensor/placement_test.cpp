#include "tensor/placement.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

// Heads held by each coordinate of a tp axis, from intervals in units of head_dim.
std::vector<int64_t> heads(const Cut& cut, int64_t width, int64_t head_dim, int64_t axis_size) {
  std::vector<int64_t> result;
  for (int64_t c = 0; c < axis_size; ++c) {
    result.push_back(total_size(cut_intervals(cut, width, axis_size, c)) / head_dim);
  }
  return result;
}

TEST(Cut, EvenWithTheRemainderToTheLowRanks) {
  EXPECT_EQ(cut_intervals({}, 10, 3, 0), (Intervals{{0, 4}}));
  EXPECT_EQ(cut_intervals({}, 10, 3, 1), (Intervals{{4, 7}}));
  EXPECT_EQ(cut_intervals({}, 10, 3, 2), (Intervals{{7, 10}}));
  EXPECT_EQ(cut_intervals({}, 2, 3, 2), Intervals{});
  EXPECT_EQ(cut_intervals({}, 0, 2, 0), Intervals{});
}

TEST(Cut, GroupedQueryAttentionNineQueryThreeKeyHeads) {
  const int64_t d = 8;
  const Cut q = Cut::units(9 * d, 3 * d, Spread::kShare, d);
  const Cut k = Cut::units(3 * d, d, Spread::kCopies);
  EXPECT_EQ(heads(q, 9 * d, d, 2), (std::vector<int64_t>{6, 3}));
  EXPECT_EQ(heads(k, 3 * d, d, 2), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(heads(q, 9 * d, d, 4), (std::vector<int64_t>{3, 3, 3, 0}));
  EXPECT_EQ(heads(k, 3 * d, d, 4), (std::vector<int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(heads(q, 9 * d, d, 6), (std::vector<int64_t>{2, 1, 2, 1, 2, 1}));
  EXPECT_EQ(heads(k, 3 * d, d, 6), (std::vector<int64_t>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(cut_intervals(q, 9 * d, 6, 3), (Intervals{{5 * d, 6 * d}}));
  EXPECT_EQ(cut_intervals(k, 3 * d, 6, 3), (Intervals{{d, 2 * d}}));
  EXPECT_EQ(copies_block_size(k, 6), 2);
  EXPECT_EQ(copies_block_size(q, 6), 1);
}

TEST(Cut, SectionsAreCutEachOnItsOwn) {
  const Cut gate_up{{{5}, {5}}};
  EXPECT_EQ(cut_intervals(gate_up, 10, 2, 0), (Intervals{{0, 3}, {5, 8}}));
  EXPECT_EQ(cut_intervals(gate_up, 10, 2, 1), (Intervals{{3, 5}, {8, 10}}));
}

TEST(Cut, ALastUnitMayBeShort) {
  const Cut blocks = Cut::units(70, 32);
  EXPECT_EQ(cut_intervals(blocks, 70, 2, 0), (Intervals{{0, 64}}));
  EXPECT_EQ(cut_intervals(blocks, 70, 2, 1), (Intervals{{64, 70}}));
}

TEST(Cut, EveryPositionIsHeldOnceOrByAWholeBlock) {
  for (int64_t axis = 1; axis <= 12; ++axis) {
    for (int64_t kv = 1; kv <= 5; ++kv) {
      for (const Spread spread : {Spread::kNone, Spread::kCopies, Spread::kShare}) {
        const Cut cut = Cut::units(kv * 6, 6, spread, 2);
        std::vector<int64_t> count(kv * 6);
        for (int64_t c = 0; c < axis; ++c) {
          for (const Interval& part : cut_intervals(cut, kv * 6, axis, c)) {
            for (int64_t i = part.begin; i < part.end; ++i) ++count[i];
          }
        }
        const int64_t want = copies_block_size(cut, axis);
        EXPECT_EQ(count, std::vector<int64_t>(kv * 6, want)) << "axis " << axis << " units " << kv;
      }
    }
  }
}

TEST(Region, NestsTensorParallelThenFsdpInRowOrder) {
  const MeshShape mesh({{"fsdp", 2}, {"tp", 2}});
  const Placements placements{{"tp", shard(0)}, {"fsdp", shard(0)}};
  // tp cuts rows 0-3 | 4-7; fsdp cuts what each tp rank holds.
  EXPECT_EQ(region_of({8, 3}, placements, mesh, 0)[0], (Intervals{{0, 2}}));  // fsdp 0, tp 0
  EXPECT_EQ(region_of({8, 3}, placements, mesh, 1)[0], (Intervals{{4, 6}}));  // fsdp 0, tp 1
  EXPECT_EQ(region_of({8, 3}, placements, mesh, 2)[0], (Intervals{{2, 4}}));  // fsdp 1, tp 0
  EXPECT_EQ(region_of({8, 3}, placements, mesh, 3)[0], (Intervals{{6, 8}}));
}

TEST(Region, EachElementHasOneOwner) {
  const MeshShape mesh({{"dp_replicate", 2}, {"fsdp", 2}, {"tp", 6}});
  const Cut k =
      Cut::units(6, 2, Spread::kCopies);  // three heads of two rows: pairs of tp hold copies
  const Placements placements{{"tp", shard(0, k)}, {"fsdp", shard(0)}};
  std::vector<int64_t> owners(6);
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const Region region = owned_region({6}, placements, mesh, rank);
    for (const Interval& part : region[0]) {
      for (int64_t i = part.begin; i < part.end; ++i) ++owners[i];
    }
  }
  EXPECT_EQ(owners, std::vector<int64_t>(6, 1));
}

// Packed q | k | v of 4 query and 1 key/value heads of 2 rows over 4 ranks: each rank has an own
// query head and a copy of k and v.
TEST(Region, SectionsHeldAsCopiesHaveOneOwnerBesideThoseThatAreNot) {
  const Cut packed{{{8, 8, Spread::kShare, 2}, {2, 2, Spread::kCopies}, {2, 2, Spread::kCopies}}};
  EXPECT_TRUE(copies_in_part(packed, 4));
  EXPECT_FALSE(copies_in_part(packed, 1));
  EXPECT_EQ(cut_intervals(packed, 12, 4, 1), (Intervals{{2, 4}, {8, 12}}));
  EXPECT_EQ(owned_intervals(packed, 12, 4, 0), (Intervals{{0, 2}, {8, 12}}));
  EXPECT_EQ(owned_intervals(packed, 12, 4, 1), (Intervals{{2, 4}}));
  EXPECT_EQ(copied_intervals(packed, 12, 4, 1), (Intervals{{8, 12}}));
  const MeshShape mesh({{"dp_replicate", 2}, {"fsdp", 3}, {"tp", 4}});
  const Placements placements{{"tp", shard(0, packed)}, {"fsdp", shard(0)}};
  std::vector<int64_t> owners(12);
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const Region region = owned_region({12, 5}, placements, mesh, rank);
    for (const Interval& part : region[0]) {
      for (int64_t i = part.begin; i < part.end; ++i) ++owners[i];
    }
  }
  EXPECT_EQ(owners, std::vector<int64_t>(12, 1));
}

TEST(Interval, ComposeLocateIntersect) {
  const Intervals held{{10, 14}, {20, 23}};
  EXPECT_EQ(compose(held, {{2, 6}}), (Intervals{{12, 14}, {20, 22}}));
  EXPECT_EQ(locate(held, {{12, 14}, {20, 22}}), (Intervals{{2, 6}}));
  EXPECT_EQ(intersect(held, {{13, 21}}), (Intervals{{13, 14}, {20, 21}}));
  EXPECT_TRUE(covers(held, {{21, 23}}));
  EXPECT_FALSE(covers(held, {{14, 15}}));
  EXPECT_ANY_THROW(locate(held, {{14, 15}}));
}

}  // namespace
}  // namespace shardproof
