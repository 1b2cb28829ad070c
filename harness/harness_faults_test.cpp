// Each planted fault must make the check of a layout fail, and be named: the first wrong tensor in
// execution order is where it was planted.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/test_source.h"
#include "harness/faults.h"
#include "harness/level2_check.h"

namespace shardproof {
namespace {

std::filesystem::path fixture(const std::string& name) {
  return source_folder() / "fixtures" / name;
}

class Faults : public testing::Test {
 protected:
  Faults()
      : launcher_(make_thread_launcher(0, {})),
        oracles_(std::filesystem::path(testing::TempDir()) / "shardproof_faults_test", true) {
    scenario_.name = "faults";
    scenario_.training.steps = 2;
    scenario_.training.data = {.samples = 3, .length = 7, .vocab = 0, .seed = 3};
    scenario_.training.max_norm = 1;
  }

  std::vector<Row> rows(const RunSeams& seams, const std::string& layout = "tp=2") {
    LayoutRun run;
    run.config = config_from_layout(layout);
    run.steps = 2;
    run.ranks_as = RanksAs::kThreads;
    const auto outcomes =
        check_layout(*launcher_, oracles_, scenario_, fixture("llama_untied_9_3"), run, seams);
    return outcomes.at(0).rows;
  }

  std::unique_ptr<Launcher> launcher_;
  OracleStore oracles_;
  Scenario scenario_;
};

TEST_F(Faults, WithoutOneEverythingPasses) {
  const std::vector<Row> all = rows({});
  ASSERT_GT(all.size(), 100u);
  const Row* wrong = first_wrong(all);
  EXPECT_EQ(wrong, nullptr) << wrong->key.to_string() << " " << wrong->error << " " << wrong->note;
}

TEST_F(Faults, DroppedAllReduceOfRowwiseIsFoundAtItsModule) {
  const std::vector<Row> all = rows(drop_all_reduce("model.layers.0.self_attn.o_proj").seams);
  const Row* wrong = first_wrong(all);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.name, "model.layers.0.self_attn.o_proj");
  EXPECT_EQ(wrong->key.kind, Kind::kOutput);
  EXPECT_GT(wrong->error, 1e-3);
}

TEST_F(Faults, DroppedAllReduceIsFoundInFloat32Too) {
  LayoutRun run;
  run.config = config_from_layout("tp=2");
  run.ranks_as = RanksAs::kThreads;
  const auto judged = [&](const RunSeams& seams) {
    return check_level2(*launcher_, oracles_, scenario_, fixture("llama_untied_9_3"), run,
                        at::kFloat, seams)
        .rows;
  };
  EXPECT_EQ(first_wrong(judged({})), nullptr);
  const std::vector<Row> all = judged(drop_all_reduce("model.layers.0.self_attn.o_proj").seams);
  const Row* wrong = first_wrong(all);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.name, "model.layers.0.self_attn.o_proj");
  EXPECT_EQ(wrong->key.kind, Kind::kOutput);
  EXPECT_EQ(wrong->level, 2);
  EXPECT_GT(wrong->error, 1e-3);
}

TEST_F(Faults, KeyCutShiftedByOneHeadIsFoundAtItsModule) {
  const std::vector<Row> all = rows(shift_rows("model.layers.0.self_attn.k_proj.weight", 6).seams);
  const Row* wrong = first_wrong(all);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.name, "model.layers.0.self_attn.k_proj");
  EXPECT_EQ(wrong->key.kind, Kind::kOutput);
  EXPECT_GT(wrong->error, 1e-3);
}

// Outputs and the loss are right, so the first wrong value is the first gradient that backward
// makes.
TEST_F(Faults, GradientsDividedByTheWorldAreFoundAtTheFirstGradient) {
  const std::vector<Row> all = rows(count_tokens_over_world().seams);
  const Row* wrong = first_wrong(all);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.kind, Kind::kGradient);
  EXPECT_EQ(wrong->key.name, "lm_head.weight");
  EXPECT_NEAR(wrong->error, 0.5, 1e-9);
}

TEST_F(Faults, OneThatTouchesNothingIsAnError) {
  // Of check_met(); empty where the fault was met.
  const auto message = [&](const FaultSpec& spec, const std::string& layout) -> std::string {
    const Fault fault = planted(spec);
    rows(fault.seams, layout);
    try {
      check_met(spec, fault);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const FaultSpec at_rowwise{.kind = "drop_all_reduce", .at = "model.layers.0.self_attn.o_proj"};
  EXPECT_EQ(message(at_rowwise, "tp=2"), "");
  EXPECT_EQ(message(at_rowwise, "fsdp=2"),
            "the fault drop_all_reduce at 'model.layers.0.self_attn.o_proj' touched nothing: this "
            "layout does nothing that it could change");
  EXPECT_NE(message({.kind = "drop_all_reduce", .at = "model.norm"}, "tp=2"), "");
  EXPECT_EQ(message({.kind = "count_tokens_over_world", .at = ""}, "tp=2"), "");
  EXPECT_NE(message({.kind = "count_tokens_over_world", .at = ""}, "fsdp=2"), "");
  const std::string key = "model.layers.0.self_attn.k_proj.weight";  // 18 rows
  EXPECT_EQ(message({.kind = "shift_rows", .at = key, .by = 6}, "tp=2"), "");
  EXPECT_NE(message({.kind = "shift_rows", .at = key, .by = 18}, "tp=2"), "");
  EXPECT_EQ(message({}, "tp=2"), "");
}

}  // namespace
}  // namespace shardproof
