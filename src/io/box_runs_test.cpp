#include "io/box_runs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

using Dims = std::vector<int64_t>;

std::vector<int64_t> offsets(const BoxRuns& runs) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < runs.count(); ++i) result.push_back(runs.offset(i));
  return result;
}

TEST(BoxRuns, WholeTensorIsOneRun) {
  const BoxRuns runs(Dims{3, 4, 5}, 2, Dims{0, 0, 0}, Dims{3, 4, 5});
  EXPECT_EQ(offsets(runs), Dims{0});
  EXPECT_EQ(runs.run_bytes(), 3 * 4 * 5 * 2);
}

TEST(BoxRuns, RowsAreOneRun) {
  const BoxRuns runs(Dims{7, 5}, 8, Dims{2, 0}, Dims{3, 5});
  EXPECT_EQ(offsets(runs), Dims{2 * 5 * 8});
  EXPECT_EQ(runs.run_bytes(), 3 * 5 * 8);
}

TEST(BoxRuns, ColumnsAreOneRunARow) {
  const BoxRuns runs(Dims{3, 5}, 4, Dims{0, 1}, Dims{3, 2});
  EXPECT_EQ(offsets(runs), (Dims{4, 24, 44}));
  EXPECT_EQ(runs.run_bytes(), 8);
}

TEST(BoxRuns, MiddleDimensionKeepsTheInnerOnesWhole) {
  const BoxRuns runs(Dims{2, 4, 3}, 1, Dims{0, 1, 0}, Dims{2, 2, 3});
  EXPECT_EQ(offsets(runs), (Dims{3, 15}));
  EXPECT_EQ(runs.run_bytes(), 6);
}

TEST(BoxRuns, CutInEveryDimension) {
  const BoxRuns runs(Dims{3, 4, 5}, 1, Dims{1, 2, 3}, Dims{2, 2, 1});
  EXPECT_EQ(offsets(runs), (Dims{33, 38, 53, 58}));
  EXPECT_EQ(runs.run_bytes(), 1);
}

TEST(BoxRuns, EmptyBoxesHaveNoRuns) {
  EXPECT_EQ(BoxRuns(Dims{3, 5}, 4, Dims{3, 0}, Dims{0, 5}).count(), 0);
  EXPECT_EQ(BoxRuns(Dims{3, 5}, 4, Dims{0, 5}, Dims{3, 0}).count(), 0);
  EXPECT_EQ(BoxRuns(Dims{0, 5}, 4, Dims{0, 1}, Dims{0, 2}).count(), 0);
  EXPECT_EQ(BoxRuns(Dims{0}, 4, Dims{0}, Dims{0}).count(), 0);
}

TEST(BoxRuns, ScalarIsOneElement) {
  const BoxRuns runs(Dims{}, 8, Dims{}, Dims{});
  EXPECT_EQ(offsets(runs), Dims{0});
  EXPECT_EQ(runs.run_bytes(), 8);
}

TEST(BoxRuns, BoxesOutsideAreRefused) {
  const Dims shape{3, 5};
  constexpr int64_t kHuge = INT64_MAX;
  EXPECT_THROW(BoxRuns(shape, 4, Dims{0}, Dims{3}), ContractError);
  EXPECT_THROW(BoxRuns(shape, 4, Dims{1, 0}, Dims{3, 5}), ContractError);
  EXPECT_THROW(BoxRuns(shape, 4, Dims{-1, 0}, Dims{1, 5}), ContractError);
  EXPECT_THROW(BoxRuns(shape, 4, Dims{0, 0}, Dims{-1, 5}), ContractError);
  EXPECT_THROW(BoxRuns(shape, 4, Dims{1, 0}, Dims{kHuge, 5}), ContractError);
  EXPECT_THROW(BoxRuns(shape, 4, Dims{kHuge, 0}, Dims{1, 5}), ContractError);
}

}  // namespace
}  // namespace shardproof
