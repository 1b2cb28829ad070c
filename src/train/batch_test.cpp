#include "train/batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace shardproof {
namespace {

const DataSpec kSpec{.samples = 7, .length = 9, .vocab = 31, .seed = 5};

TEST(SplitSamples, DealsTheRemainderToTheLowRanks) {
  EXPECT_EQ(split_samples(5, 3, 0), (SampleRange{0, 2}));
  EXPECT_EQ(split_samples(5, 3, 1), (SampleRange{2, 2}));
  EXPECT_EQ(split_samples(5, 3, 2), (SampleRange{4, 1}));
  EXPECT_EQ(split_samples(2, 3, 2), (SampleRange{2, 0}));
  EXPECT_THROW(split_samples(5, 3, 3), ContractError);
}

TEST(MakeBatch, IsTheSameDataHoweverItIsSplit) {
  const Batch whole = make_batch(kSpec, 2, {0, 7});
  for (const int64_t ranks : {1, 2, 3, 4, 7, 9}) {
    std::vector<at::Tensor> ids, labels;
    std::vector<int64_t> samples;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Batch part = make_batch(kSpec, 2, split_samples(7, ranks, rank));
      ids.push_back(part.input_ids);
      labels.push_back(part.labels);
      samples.insert(samples.end(), part.sample_ids.begin(), part.sample_ids.end());
    }
    EXPECT_TRUE(at::equal(at::cat(ids), whole.input_ids)) << ranks;
    EXPECT_TRUE(at::equal(at::cat(labels), whole.labels)) << ranks;
    EXPECT_EQ(samples, whole.sample_ids) << ranks;
  }
}

TEST(MakeBatch, DependsOnSeedStepAndSample) {
  const Batch batch = make_batch(kSpec, 0, {0, 7});
  DataSpec other = kSpec;
  other.seed = 6;
  EXPECT_FALSE(at::equal(batch.input_ids, make_batch(other, 0, {0, 7}).input_ids));
  const Batch next = make_batch(kSpec, 1, {0, 7});
  EXPECT_FALSE(at::equal(batch.input_ids, next.input_ids));
  EXPECT_FALSE(at::equal(batch.input_ids[0], batch.input_ids[1]));
  std::set<int64_t> ids(batch.sample_ids.begin(), batch.sample_ids.end());
  ids.insert(next.sample_ids.begin(), next.sample_ids.end());
  EXPECT_EQ(ids.size(), 14u);
  EXPECT_GE(batch.input_ids.min().item<int64_t>(), 0);
  EXPECT_LT(batch.input_ids.max().item<int64_t>(), 31);
}

TEST(MakeBatch, GivesEachSampleItsOwnNumberOfLabels) {
  std::set<int64_t> counts;
  for (int64_t sample = 0; sample < 7; ++sample) {
    const Batch row = make_batch(kSpec, 0, {sample, 1});
    const int64_t valid = count_valid(row);
    counts.insert(valid);
    EXPECT_GE(valid, 1);
    if (sample == 6) {
      EXPECT_EQ(valid, 1);
    }
    const at::Tensor counted = row.labels != kIgnoredLabel;
    EXPECT_TRUE(at::equal(row.labels.masked_select(counted), row.input_ids.masked_select(counted)));
  }
  EXPECT_GE(counts.size(), 3u);
  EXPECT_THROW(make_batch(kSpec, 0, {6, 2}), ContractError);
}

}  // namespace
}  // namespace shardproof
