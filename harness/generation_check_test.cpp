// Layouts of a fixture against a generation.json made by its unsharded run, right and with a wrong
// token planted.
#include "harness/generation_check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_source.h"
#include "harness/faults.h"
#include "models/end_tokens.h"
#include "train/generation.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

class GenerationCheck : public testing::Test {
 protected:
  GenerationCheck()
      : launcher_(make_thread_launcher(0, {})),
        model_(fs::path(testing::TempDir()) / "shardproof_generation_test" /
               testing::UnitTest::GetInstance()->current_test_info()->name()) {
    const fs::path fixture = source_folder() / "fixtures" / "llama_untied_9_3";
    fs::remove_all(model_);
    fs::create_directories(model_);
    for (const char* name : {"config.json", "model.safetensors"})
      fs::copy_file(fixture / name, model_ / name);
    scenario_.generation = {{at::kFloat, at::kBFloat16}, 0};
    make_reference();
  }
  ~GenerationCheck() override { fs::remove_all(model_); }

  void make_reference() {
    const std::vector<std::vector<int64_t>> prompts = {{5}, {80, 3, 41, 7, 9}, {11, 29, 63}};
    GenerateOptions options;
    options.max_new_tokens = 7;
    options.eos_ids = read_end_tokens(model_);
    Generated made;
    launcher_->run(1, "reference", [&](const CommPtr& self) {
      const PlacedModel placed = place_model(self, {.directory = model_}, at::kFloat, {});
      made = generate(*placed.causal_lm.model, prompts, options, *self);
    });
    for (size_t i = 0; i < prompts.size(); ++i)
      json_.push_back({{"prompt", "a prompt"},
                       {"prompt_ids", prompts[i]},
                       {"ids", made.tokens[i]},
                       {"margins", made.margins[i]}});
    write();
  }
  void write() { std::ofstream(model_ / "generation.json") << json_.dump(); }

  // Another token than the right one.
  void plant(size_t prompt, size_t step) {
    auto& token = json_[prompt]["ids"][step];
    token = (token.get<int64_t>() + 1) % 101;
    write();
  }

  std::vector<LayoutOutcome> check(const std::string& layout, at::ScalarType dtype,
                                   const RunSeams& seams = {}) {
    LayoutRun run;
    run.config = config_from_layout(layout);
    run.ranks_as = RanksAs::kThreads;
    GenerationOracles oracles;
    return check_generation(*launcher_, oracles, scenario_, model_, run, dtype, seams);
  }

  std::unique_ptr<Launcher> launcher_;
  fs::path model_;
  Scenario scenario_;
  nlohmann::json json_ = nlohmann::json::array();
};

TEST_F(GenerationCheck, EveryLayoutSaysTheSameInFloat32) {
  for (const std::string layout : {"tp=4", "fsdp=3", "fsdp=2,tp=2"}) {
    const std::vector<LayoutOutcome> outcomes = check(layout, at::kFloat);
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes[0].against, "transformers float32");
    ASSERT_EQ(outcomes[0].rows.size(), 3u);
    for (const Row& row : outcomes[0].rows) {
      EXPECT_TRUE(row.passed) << layout << " " << row.key.name << ": " << row.note;
      EXPECT_EQ(row.dtype, "float32");
      EXPECT_EQ(row.elements, 7);
      EXPECT_EQ(row.margins.size(), 7u);
    }
  }
}

TEST_F(GenerationCheck, APlantedTokenFailsAndIsNamed) {
  plant(1, 2);
  const std::vector<Row> rows = check("fsdp=2,tp=2", at::kFloat).at(0).rows;
  const Row* wrong = first_wrong(rows);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.to_string(), "tokens of prompt 1, step 2");
  EXPECT_EQ(wrong->error, 1);
  const int64_t right = (json_[1]["ids"][2].get<int64_t>() + 100) % 101;
  EXPECT_TRUE(wrong->note.starts_with(fmt::format("step 3: token {} instead of {}, margin ", right,
                                                  json_[1]["ids"][2].get<int64_t>())))
      << wrong->note;
  EXPECT_TRUE(rows[0].passed);
  EXPECT_TRUE(rows[2].passed);
}

TEST_F(GenerationCheck, Bfloat16IsComparedWithBoth) {
  const std::vector<LayoutOutcome> outcomes = check("tp=2", at::kBFloat16);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].against, "transformers float32");
  EXPECT_EQ(outcomes[1].against, "single bfloat16");
  for (const LayoutOutcome& outcome : outcomes) {
    ASSERT_EQ(outcome.rows.size(), 4u);
    const Row* wrong = first_wrong(outcome.rows);
    EXPECT_EQ(wrong, nullptr) << outcome.against << ": " << wrong->key.name << ": " << wrong->note;
    EXPECT_EQ(outcome.rows[3].key.kind, Kind::kMargins);
  }
}

// The same wrong token, where the reference says it was nearly chosen and where it says it was not.
TEST_F(GenerationCheck, Bfloat16PassesADifferenceOnlyBelowTheNoise) {
  plant(2, 1);
  json_[2]["margins"][1] = 1e-9;
  write();
  EXPECT_TRUE(check("tp=2", at::kBFloat16).at(0).rows[2].passed);
  json_[2]["margins"][1] = 50;
  write();
  const std::vector<LayoutOutcome> outcomes = check("tp=2", at::kBFloat16);
  const Row& row = outcomes.at(0).rows[2];
  EXPECT_FALSE(row.passed);
  EXPECT_NE(row.note.find("margin 5.00e+01, noise "), std::string::npos) << row.note;
  EXPECT_TRUE(outcomes.at(1).rows[2].passed);  // the unsharded run chose the same
}

TEST_F(GenerationCheck, ADroppedAllReduceIsCaughtInBothTypes) {
  const RunSeams fault = drop_all_reduce("model.layers.0.self_attn.o_proj").seams;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const LayoutOutcome& outcome : check("tp=2", dtype, fault))
      EXPECT_NE(first_wrong(outcome.rows), nullptr) << outcome.against;
}

TEST_F(GenerationCheck, TokensCutTheReference) {
  scenario_.generation->tokens = 3;
  EXPECT_EQ(check("tp=2", at::kFloat).at(0).rows.at(1).elements, 3);
  scenario_.generation->tokens = 8;
  EXPECT_THROW(check("tp=2", at::kFloat), InputError);
}

TEST_F(GenerationCheck, AWrongReferenceIsNamed) {
  json_[1].erase("margins");
  write();
  try {
    read_generation_reference(model_, 0);
    FAIL() << "it was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("generation.json: entry 1: margins: "),
              std::string::npos)
        << error.what();
  }
  json_ = nlohmann::json::array();
  write();
  EXPECT_THROW(read_generation_reference(model_, 0), InputError);
}

}  // namespace
}  // namespace shardproof
