#include "tensor/conversion.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

const Site kSite{"m", "x", "forward"};

at::Tensor numbered(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).view(shape);
}

at::Tensor part(const at::Tensor& whole, const Placement& placement, int64_t size,
                int64_t coordinate) {
  const Region all = whole_region(whole.sizes().vec());
  Region mine = all;
  if (placement.is_shard()) {
    mine[placement.dim] = cut_intervals(placement.cut, whole.size(placement.dim), size, coordinate);
  }
  return take(whole, all, mine);
}

AxisView view_of(const CommPtr& comm) {
  return {.comm = comm, .block = nullptr, .size = comm->size(), .coordinate = comm->rank()};
}

TEST(Conversion, PlansOneOperationForEachPair) {
  const Placement rows = shard(0, Cut::plain(7));
  const Placement columns = shard(1, Cut::plain(5));
  EXPECT_EQ(plan_conversion(replicate(), replicate(), 4), Operation::kNone);
  EXPECT_EQ(plan_conversion(partial(), replicate(), 1), Operation::kNone);
  EXPECT_EQ(plan_conversion(partial(), replicate(), 4), Operation::kAllReduce);
  EXPECT_EQ(plan_conversion(partial(), rows, 4), Operation::kReduceScatter);
  EXPECT_EQ(plan_conversion(rows, replicate(), 4), Operation::kAllGather);
  EXPECT_EQ(plan_conversion(rows, columns, 4), Operation::kExchange);
  EXPECT_EQ(plan_conversion(rows, rows, 4), Operation::kNone);
  EXPECT_EQ(plan_conversion(rows, partial(), 4), Operation::kEmbed);
  EXPECT_EQ(plan_conversion(replicate(), rows, 4), Operation::kSlice);
  EXPECT_EQ(plan_conversion(replicate(), partial(), 4), Operation::kMask);
  EXPECT_EQ(plan_conversion(replicate(), addends(0, Cut::plain(7)), 4), Operation::kSlice);
  EXPECT_THROW(plan_conversion(partial(), addends(0, Cut::plain(7)), 4), ContractError);
}

// 7 x 5 over 1 to 6 ranks: shards are uneven, at 6 ranks columns may be empty.
class ConversionOverRanks : public testing::TestWithParam<int> {};

TEST_P(ConversionOverRanks, EveryPairGivesThePartsOfTheWhole) {
  const at::Tensor whole = numbered({7, 5});
  const Cut heads = Cut::units(6, 2, Spread::kCopies);
  const std::vector<Placement> shards = {shard(0, Cut::plain(7)), shard(1, Cut::plain(5)),
                                         shard(1, Cut{{{3}, {2}}})};
  run_ranks(GetParam(), [&](CommPtr comm) {
    const AxisView axis = view_of(comm);
    // Addends whose sum over the ranks is the whole: rank r gives r + 1 shares of it.
    const double shares = axis.size * (axis.size + 1) / 2.0;
    const at::Tensor addend = whole * (axis.coordinate + 1.0) / shares;
    for (const Placement& from : shards) {
      const at::Tensor mine = part(whole, from, axis.size, axis.coordinate);
      EXPECT_TRUE(at::equal(convert(mine, from, replicate(), axis, kSite), whole));
      EXPECT_TRUE(at::equal(convert(whole, replicate(), from, axis, kSite), mine));
      EXPECT_TRUE(at::allclose(convert(addend, partial(), from, axis, kSite), mine, 1e-14, 1e-14));
      for (const Placement& to : shards) {
        EXPECT_TRUE(at::equal(convert(mine, from, to, axis, kSite),
                              part(whole, to, axis.size, axis.coordinate)));
      }
      const at::Tensor embedded = convert(mine, from, partial(), axis, kSite);
      EXPECT_TRUE(at::equal(convert(embedded, partial(), replicate(), axis, kSite), whole));
    }
    const at::Tensor masked = convert(whole, replicate(), partial(), axis, kSite);
    EXPECT_TRUE(at::equal(convert(masked, partial(), replicate(), axis, kSite), whole));
    const at::Tensor kv = numbered({6, 2});
    const Placement copies = shard(0, heads);
    EXPECT_TRUE(at::equal(
        convert(part(kv, copies, axis.size, axis.coordinate), copies, replicate(), axis, kSite),
        kv));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ConversionOverRanks, testing::Values(1, 2, 3, 4, 6));

// Of what is whole, one of those that hold copies gives it: their sum is the part again.
TEST(Conversion, AddendsOfAWholeAreOneRanks) {
  const Cut heads = Cut::units(6, 2, Spread::kCopies);
  run_ranks(6, [&](CommPtr comm) {
    const CommPtr block = comm->split(comm->rank() / 2, comm->rank(), "tp/2");
    const AxisView axis{comm, block, comm->size(), comm->rank()};
    const at::Tensor whole = numbered({6, 2});
    const at::Tensor mine = part(whole, shard(0, heads), 6, axis.coordinate);
    const at::Tensor addend = convert(whole, replicate(), addends(0, heads), axis, kSite);
    EXPECT_TRUE(at::equal(addend, comm->rank() % 2 == 0 ? mine : at::zeros_like(mine)));
    EXPECT_TRUE(at::equal(convert(addend, addends(0, heads), shard(0, heads), axis, kSite), mine));
  });
}

TEST(Conversion, SumsTheAddendsOfEachBlockOnce) {
  const Cut heads = Cut::units(6, 2, Spread::kCopies);  // 3 heads over 6 ranks: pairs hold copies
  run_ranks(6, [&](CommPtr comm) {
    const CommPtr block = comm->split(comm->rank() / 2, comm->rank(), "tp/2");
    const AxisView axis{comm, block, comm->size(), comm->rank()};
    const at::Tensor addend = at::full({2}, comm->rank() + 1.0, at::kDouble);
    const at::Tensor sum = convert(addend, addends(0, heads), shard(0, heads), axis, kSite);
    const double first = comm->rank() / 2 * 2 + 1.0;
    EXPECT_TRUE(at::equal(sum, at::full({2}, 2 * first + 1, at::kDouble)));
  });
}

TEST(Conversion, SendsNoMoreThanThePlanSays) {
  const auto recorder = std::make_shared<Recorder>();
  const at::Tensor whole = numbered({7, 5});
  run_ranks(3, [&](CommPtr world) {
    const CommPtr comm = world->rank() == 0 ? record(world, recorder) : world;
    const AxisView axis = view_of(comm);
    const Placement rows = shard(0, Cut::plain(7));
    convert(part(whole, rows, 3, axis.coordinate), rows, replicate(), axis, kSite);  // 3 rows of 5
    convert(whole, partial(), rows, axis, kSite);                                    // all 35
  });
  ASSERT_EQ(recorder->records().size(), 2u);
  EXPECT_EQ(recorder->records()[0].operation, "all_gather");
  EXPECT_EQ(recorder->records()[0].bytes, 15 * 8);
  EXPECT_EQ(recorder->records()[1].operation, "reduce_scatter");
  EXPECT_EQ(recorder->records()[1].bytes, 35 * 8);
}

}  // namespace
}  // namespace shardproof
