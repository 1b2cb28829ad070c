// Level 2 on a small model: clean runs raise no alarm, whatever the data; faults do; the truth, the
// twins and the rule are what rule.h says.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "base/test_source.h"
#include "comm/self.h"
#include "harness/faults.h"
#include "harness/level2_check.h"
#include "harness/twin.h"
#include "harness/working_type.h"

namespace shardproof {
namespace {

std::filesystem::path fixture(const std::string& name) {
  return source_folder() / "fixtures" / name;
}

class Level2 : public testing::TestWithParam<at::ScalarType> {
 protected:
  Level2()
      : launcher_(make_thread_launcher(0, {})),
        folder_(std::filesystem::path(testing::TempDir()) /
                fmt::format("shardproof_level2_test_{}", getpid())),
        oracles_(folder_, true) {
    scenario_.name = "level2";
    scenario_.training.data = {.samples = 3, .length = 9, .vocab = 0, .seed = 1};
  }

  std::vector<Row> rows(const std::string& layout, const RunSeams& seams = {}) {
    LayoutRun run;
    run.config = config_from_layout(layout);
    run.ranks_as = RanksAs::kThreads;
    return check_level2(*launcher_, oracles_, scenario_, model_, run, GetParam(), seams).rows;
  }

  const std::filesystem::path model_ = fixture("llama_linear_6_2");
  std::unique_ptr<Launcher> launcher_;
  std::filesystem::path folder_;
  OracleStore oracles_;
  Scenario scenario_;
};

INSTANTIATE_TEST_SUITE_P(Types, Level2, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return working_type_name(info.param); });

TEST_P(Level2, TwentyCleanSeedsRaiseNoAlarm) {
  double most = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    scenario_.training.data.seed = seed;
    // 2 key/value heads: at tp=4 neighbours hold copies of them.
    for (const char* layout : {"tp=2", "tp=4", "fsdp=2,tp=2"}) {
      const std::vector<Row> all = rows(layout);
      ASSERT_GT(all.size(), 50u);
      const Row* wrong = first_wrong(all);
      EXPECT_EQ(wrong, nullptr) << layout << ", seed " << seed << ": " << wrong->key.to_string()
                                << " " << wrong->error << " of " << wrong->allowed << " "
                                << wrong->note;
      most = std::max(most, worst(all)->share());
      EXPECT_EQ(all.front().level, 2);
      EXPECT_EQ(all.front().dtype, working_type_name(GetParam()));
    }
  }
  std::cout << "worst share of the budget: " << most << '\n';
  EXPECT_GT(most, 0.01);  // the error is that of a working type, and is seen
}

TEST_P(Level2, ADroppedAllReduceIsFoundAtItsModule) {
  const std::vector<Row> all =
      rows("tp=2", drop_all_reduce("model.layers.0.self_attn.o_proj").seams);
  const Row* wrong = first_wrong(all);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.name, "model.layers.0.self_attn.o_proj");
  EXPECT_EQ(wrong->key.kind, Kind::kOutput);
  EXPECT_GT(wrong->share(), 1);
}

TEST_P(Level2, TheTruthStartsFromRoundedWeights) {
  TrainingSpec spec = scenario_.training;
  spec.model.directory = model_;
  const RunRecord& truth = oracles_.get(*launcher_, level2_truth(spec, GetParam()), {});
  const RoundingErrors& rounding =
      oracles_.rounding(*launcher_, level2_run(spec, GetParam()), truth);

  // The embedding only copies weights: without rounding of its own, it must be exact.
  const RecordEntry* embedding = truth.find({Kind::kOutput, "model.embed_tokens", 0});
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(rounding.by_entry.at(embedding->order).unsharded, 0);
  const RecordEntry* logits = truth.find({Kind::kOutput, "logits", 0});
  ASSERT_NE(logits, nullptr);
  const double error = rounding.by_entry.at(logits->order).unsharded / logits->norm;
  EXPECT_GT(error, 0.05 * epsilon_of(GetParam()));
  EXPECT_LT(error, 50 * epsilon_of(GetParam()));
  const RecordEntry* loss = truth.find({Kind::kLoss, "loss", 0});
  ASSERT_NE(loss, nullptr);
  for (const RecordEntry* entry : {loss, logits})
    EXPECT_GT(rounding.by_entry.at(entry->order).twins, 0) << entry->key.to_string();
}

class Twin : public Level2 {};
INSTANTIATE_TEST_SUITE_P(Types, Twin, testing::Values(at::kDouble),
                         [](const auto& info) { return working_type_name(info.param); });

// In float64 a twin is the unsharded run but for the order of its sums.
TEST_P(Twin, ComputesTheSame) {
  TrainingSpec spec = level2_run(scenario_.training, GetParam());
  spec.model.directory = model_;
  const RunRecord& record = oracles_.get(*launcher_, spec, {});
  const CommPtr self = make_self_communicator();
  RunComparison comparison(record, {.steps = 1});
  const ValueSink take = [&](const Value& value) {
    comparison.take(in_order(value, spec.data, /*twin=*/1));
  };
  run_training(self, spec, {}, {take}, twin_seams(spec.data.seed, /*twin=*/1));
  double most = 0;
  for (const Row& row : comparison.finish(*self)) {
    EXPECT_LT(row.error, 1e-13) << row.key.to_string();
    most = std::max(most, row.error);
  }
  EXPECT_GT(most, 0);  // another order has other roundings
}

}  // namespace
}  // namespace shardproof
