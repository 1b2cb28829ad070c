#include "harness/scenario_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

class ScenarioFile : public testing::Test {
 protected:
  ScenarioFile() : folder_(fs::path(testing::TempDir()) / "shardproof_scenario_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model");
    std::ofstream(folder_ / "model" / "config.json") << "{}";
  }
  ~ScenarioFile() override { fs::remove_all(folder_); }

  Scenario read(const std::string& text, std::optional<RanksAs> ranks_as = {}) {
    std::ofstream(folder_ / "one.toml") << text;
    return read_scenario(folder_ / "one.toml", ranks_as);
  }
  // The message of the InputError that reading throws, from the file's name on.
  std::string problem(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find("one.toml"));
    }
    return "none";
  }
  static std::string with(const std::string& lines) {
    return "claim = 'c'\nmodels = ['model']\n" + lines;
  }

  fs::path folder_;
};

TEST_F(ScenarioFile, ReadsEveryKey) {
  const Scenario scenario = read(R"(
    claim = "it holds"
    tags = ["ci", "quick"]
    models = ["model"]
    ranks_as = "threads"
    steps = 4
    watch = "layers"
    against = ["single", "dp_replicate"]
    allow_zero = ["a.*.b"]
    init_seed = 13
    level2 = ["bfloat16", "float32"]
    layouts = ["tp=3", {layout = "dp_replicate=2,fsdp=2", steps = 1, check = ["gradients", "norm"], ranks_as = "processes"}]
    [data]
    samples = 6
    length = 9
    seed = 11
    [optimizer]
    lr = 0.5
    weight_decay = 0
    max_norm = 2
  )");
  EXPECT_EQ(scenario.name, "one");
  EXPECT_EQ(scenario.claim, "it holds");
  EXPECT_EQ(scenario.tags, (std::vector<std::string>{"ci", "quick"}));
  EXPECT_EQ(model_name(scenario.models.at(0)), "model");
  EXPECT_EQ(scenario.training.steps, 4);
  EXPECT_EQ(scenario.training.model.init_seed, 13u);
  EXPECT_EQ(scenario.level2, (std::vector{at::kBFloat16, at::kFloat}));
  EXPECT_EQ(scenario.training.watch, Watch::kLayers);
  EXPECT_EQ(scenario.training.data.samples, 6);
  EXPECT_EQ(scenario.training.data.length, 9);
  EXPECT_EQ(scenario.training.data.seed, 11u);
  EXPECT_EQ(scenario.training.adamw.lr, 0.5);
  EXPECT_EQ(scenario.training.adamw.weight_decay, 0);
  EXPECT_EQ(scenario.training.max_norm, 2);
  EXPECT_EQ(scenario.against, (std::vector{Against::kSingle, Against::kDpReplicate}));
  EXPECT_EQ(scenario.allow_zero, std::vector<std::string>{"a.*.b"});
  ASSERT_EQ(scenario.layouts.size(), 2u);
  EXPECT_EQ(scenario.layouts[0].ranks(), 3);
  EXPECT_EQ(scenario.layouts[0].ranks_as, RanksAs::kThreads);
  EXPECT_TRUE(scenario.layouts[0].update);
  EXPECT_EQ(scenario.layouts[1].data_size(), 4);
  EXPECT_EQ(scenario.layouts[1].ranks_as, RanksAs::kProcesses);
  EXPECT_EQ(scenario.layouts[1].kinds, (std::set{Kind::kGradient, Kind::kNorm}));
  EXPECT_FALSE(scenario.layouts[1].update);  // one step, and nothing after it is compared
}

TEST_F(ScenarioFile, ReadsGeneration) {
  const std::string text = with("layouts = ['tp=2']\n[generation]\ndtypes = ['bfloat16']\n");
  EXPECT_TRUE(problem(text).starts_with("one.toml:2: models: there is no "));
  std::ofstream(folder_ / "model" / "generation.json") << "[]";
  EXPECT_EQ(read(text).generation->dtypes, std::vector{at::kBFloat16});
  EXPECT_EQ(read(text).generation->tokens, 0);
  EXPECT_EQ(read(text + "tokens = 8").generation->tokens, 8);
  EXPECT_FALSE(read(with("layouts = ['tp=2']")).generation.has_value());

  EXPECT_EQ(problem(text + "token = 8"),
            "one.toml:6: generation.token: is no key of a scenario; did you mean 'tokens'?");
  EXPECT_EQ(problem(text + "tokens = 0"),
            "one.toml:6: generation.tokens: is 0: it must be at least 1");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\n[generation]\ndtypes = ['float64']")),
            "one.toml:5: generation.dtypes: is 'float64'; it must be one of float32, bfloat16");
  EXPECT_TRUE(problem(with("layouts = ['tp=2']\n[generation]\ntokens = 8"))
                  .find("generation.dtypes: is missing") != std::string::npos);
  EXPECT_EQ(problem(with("steps = 2\nlayouts = ['tp=2']\n[generation]\ndtypes = ['float32']")),
            "one.toml:3: steps: does not go with [generation], which trains nothing");
  EXPECT_EQ(problem(text + "[data]\nsamples = 3"),
            "one.toml:6: data: does not go with [generation], which trains nothing");
  EXPECT_EQ(problem(with("layouts = [{layout = 'tp=2', steps = 1}]\n[generation]\n"
                         "dtypes = ['float32']")),
            "one.toml:3: layouts.steps: does not go with [generation], which trains nothing");
}

TEST_F(ScenarioFile, TheCallGoesBeforeTheFile) {
  const Scenario scenario =
      read(with("ranks_as = 'threads'\nlayouts = ['tp=2']"), RanksAs::kProcesses);
  EXPECT_EQ(scenario.layouts[0].ranks_as, RanksAs::kProcesses);
}

TEST_F(ScenarioFile, NamesFileLineAndKeyOfWhatIsWrong) {
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nstep = 3")),
            "one.toml:4: step: is no key of a scenario; did you mean 'steps'?");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nsteps = '3'")),
            "one.toml:4: steps: must be a whole number");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nsteps = 0")),
            "one.toml:4: steps: is 0: it must be at least 1");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\n[data]\nsamples = 2.5")),
            "one.toml:5: data.samples: must be a whole number");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nwatch = 'all'")),
            "one.toml:4: watch: is 'all'; it must be one of modules, layers");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nlevel2 = ['float16']")),
            "one.toml:4: level2: is 'float16'; it must be one of float32, bfloat16");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nlevel2 = ['float32', 'float32']")),
            "one.toml:4: level2: names 'float32' twice");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nlevel2 = []")), "one.toml:4: level2: names no type");
  EXPECT_TRUE(problem(with("layouts = ['tp=two']")).starts_with("one.toml:3: layouts: "));
  EXPECT_TRUE(problem(with("layouts = [{layout = 'tp=2', ranks_as = 'gpus'}]"))
                  .starts_with("one.toml:3: layouts.ranks_as: is 'gpus'"));
  EXPECT_TRUE(problem("models = ['model']\nlayouts = ['tp=2']")
                  .ends_with("claim: is missing; every scenario must state it"));
  EXPECT_TRUE(problem("claim = 'c'\nmodels = ['nowhere']\nlayouts = ['tp=2']")
                  .starts_with("one.toml:2: models: there is no "));
  EXPECT_TRUE(problem("claim = 'c'\nmodels = [").starts_with("one.toml:2: "));
  EXPECT_TRUE(
      problem(with("")).ends_with("there is no run and no reference: nothing would be compared"));
  EXPECT_TRUE(problem(with("layouts = ['tp=2']\nreference = true"))
                  .starts_with("one.toml:2: models: there is no "));
}

// What would compare nothing, or a run with itself, is refused before it runs.
TEST_F(ScenarioFile, RefusesWhatProvesNothing) {
  EXPECT_EQ(problem(with("layouts = ['tp=2']\nagainst = []")),
            "one.toml:4: against: names nothing to compare with");
  EXPECT_EQ(problem(with("layouts = ['single']")),
            "one.toml:3: layouts: 'single' would be compared with itself, or with nothing");
  EXPECT_EQ(problem(with("against = ['dp_replicate']\nlayouts = ['fsdp=2', 'tp=2']")),
            "one.toml:4: layouts: 'tp=2' would be compared with itself, or with nothing");
  EXPECT_EQ(problem(with("layouts = ['fsdp=2,tp=2', 'tp=2,fsdp=2']")),
            "one.toml:3: layouts: 'fsdp=2,tp=2' is named twice");
  EXPECT_TRUE(problem(with("layouts = [{layout = 'tp=2', steps = 1}]"))
                  .starts_with("one.toml:3: layouts.steps: is less than the scenario's"));
  EXPECT_EQ(problem(with("layouts = ['tp=99999']")),
            "one.toml:3: layouts: 'tp=99999' has 99999 ranks, more than 1024");
  EXPECT_EQ(problem(with("layouts = ['tp=2']\n[optimizer]\nmax_norm = nan")),
            "one.toml:5: optimizer.max_norm: must be finite");
}

TEST_F(ScenarioFile, TagsAreReadWithoutTheRest) {
  read(with("layouts = ['tp=2']"));
  std::ofstream(folder_ / "two.toml") << "tags = ['x']\nmodels = ['nowhere']\n";
  EXPECT_TRUE(has_tag(folder_ / "two.toml", "x"));
  EXPECT_FALSE(has_tag(folder_ / "two.toml", "y"));
}

TEST_F(ScenarioFile, IsFoundByStemOrPath) {
  read(with("layouts = ['tp=2']"));
  EXPECT_EQ(find_scenarios(folder_, {"one"}).at(0), folder_ / "one.toml");
  EXPECT_EQ(find_scenarios("elsewhere", {(folder_ / "one.toml").string()}).at(0),
            folder_ / "one.toml");
  EXPECT_THROW(find_scenarios(folder_, {"two"}), InputError);
  EXPECT_EQ(all_scenarios(folder_).size(), 1u);
}

}  // namespace
}  // namespace shardproof
