#include "harness/scenario_file.h"

#include <algorithm>

#include "base/check.h"
#include "harness/toml_reader.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

// Of one run; more threads than that in a process are no test of anything.
constexpr int64_t kMostRanks = 1024;

class ScenarioReader {
 public:
  ScenarioReader(const toml::table& table, const fs::path& file, std::optional<RanksAs> ranks_as)
      : root_(table, file.string()), override_(ranks_as) {
    scenario_.name = file.stem().string();
    scenario_.file = file;
  }

  Scenario read() {
    root_.require("claim");
    root_.require("models");
    scenario_.claim = root_.text("claim", "");
    scenario_.tags = root_.texts("tags", {});
    scenario_.reference = root_.flag("reference", false);
    scenario_.allow_zero = root_.texts("allow_zero", {});
    read_generation();
    read_training();
    read_init_seed();
    read_models();
    read_against();
    for (const char* key : {"tp_plan", "sp_plan", "fsdp_plan", "ep_plan"})
      scenario_.plans[key] = read_plan(key);
    read_layouts();
    read_level2();
    read_fault();
    root_.refuse_others();
    return scenario_;
  }

 private:
  // One of a few words.
  template <class T>
  T word(TomlReader& table, const std::string& key,
         const std::vector<std::pair<std::string, T>>& words, T fallback) {
    const std::string text = table.text(key, words.front().first);
    if (table.node(key) == nullptr) return fallback;
    return parsed_word(table, key, text, words);
  }

  template <class T>
  T parsed_word(TomlReader& table, const std::string& key, const std::string& text,
                const std::vector<std::pair<std::string, T>>& words) {
    std::vector<std::string> known;
    for (const auto& [name, value] : words) {
      if (name == text) return value;
      known.push_back(name);
    }
    table.fail(key, table.node(key),
               fmt::format("is '{}'; it must be one of {}", text, fmt::join(known, ", ")));
  }

  RanksAs ranks_as(TomlReader& table, RanksAs fallback) {
    const RanksAs stated = word<RanksAs>(
        table, "ranks_as", {{"processes", RanksAs::kProcesses}, {"threads", RanksAs::kThreads}},
        fallback);
    return override_.value_or(stated);
  }

  void read_training() {
    TrainingSpec& spec = scenario_.training;
    word<int>(root_, "dtype", {{"float64", 0}}, 0);
    spec.steps = root_.integer("steps", 3, 1);
    spec.watch =
        word<Watch>(root_, "watch", {{"modules", Watch::kModules}, {"layers", Watch::kLayers}},
                    Watch::kModules);
    TomlReader data = root_.table("data");
    spec.data.samples = data.integer("samples", 5, 1);
    spec.data.length = data.integer("length", 12, 2);
    spec.data.seed = static_cast<uint64_t>(data.integer("seed", 1, 0));
    data.refuse_others();
    TomlReader optimizer = root_.table("optimizer");
    AdamWOptions& adamw = spec.adamw;
    adamw.lr = optimizer.number("lr", adamw.lr);
    adamw.beta1 = optimizer.number("beta1", adamw.beta1);
    adamw.beta2 = optimizer.number("beta2", adamw.beta2);
    adamw.eps = optimizer.number("eps", adamw.eps);
    adamw.weight_decay = optimizer.number("weight_decay", adamw.weight_decay);
    spec.max_norm = optimizer.number("max_norm", 0);
    if (spec.max_norm < 0)
      optimizer.fail("max_norm", optimizer.node("max_norm"), "must not be negative");
    optimizer.refuse_others();
    try {
      adamw.validate();
    } catch (const InputError& error) {
      root_.fail("optimizer", root_.node("optimizer"), error.what());
    }
  }

  // One type or more, none of them twice.
  std::vector<at::ScalarType> working_types(TomlReader& table, const std::string& key) {
    std::vector<at::ScalarType> types;
    for (const std::string& text : table.texts(key, {})) {
      const auto type = parsed_word<at::ScalarType>(
          table, key, text, {{"float32", at::kFloat}, {"bfloat16", at::kBFloat16}});
      if (std::find(types.begin(), types.end(), type) != types.end())
        table.fail(key, table.node(key), fmt::format("names '{}' twice", text));
      types.push_back(type);
    }
    if (types.empty()) table.fail(key, table.node(key), "names no type");
    return types;
  }

  void read_generation() {
    if (root_.node("generation") == nullptr) return;
    TomlReader table = root_.table("generation");
    table.require("dtypes");
    scenario_.generation = {working_types(table, "dtypes"), 0};
    if (table.node("tokens") != nullptr)
      scenario_.generation->tokens = table.integer("tokens", 1, 1);
    table.refuse_others();
    for (const char* key : {"steps", "watch", "against", "level2", "reference", "init_seed",
                            "allow_zero", "dtype", "data", "optimizer"})
      if (root_.node(key) != nullptr)
        root_.fail(key, root_.node(key), "does not go with [generation], which trains nothing");
  }

  void read_init_seed() {
    if (root_.node("init_seed") == nullptr) return;
    scenario_.training.model.init_seed = static_cast<uint64_t>(root_.integer("init_seed", 0, 0));
    if (scenario_.reference)
      root_.fail("init_seed", root_.node("init_seed"),
                 "does not go with reference = true: transformers has its weights from the file");
  }

  void read_models() {
    for (const std::string& text : root_.texts("models", {})) {
      const fs::path directory = (scenario_.file.parent_path() / text).lexically_normal();
      std::vector<std::string> wanted = {"config.json"};
      if (scenario_.reference) wanted.emplace_back("reference.safetensors");
      if (scenario_.generation) wanted.emplace_back("generation.json");
      for (const std::string& name : wanted)
        if (!fs::is_regular_file(directory / name))
          root_.fail("models", root_.node("models"),
                     fmt::format("there is no {}; harness/run makes what can be made",
                                 (directory / name).string()));
      scenario_.models.push_back(directory);
    }
    if (scenario_.models.empty()) root_.fail("models", root_.node("models"), "names no model");
  }

  void read_against() {
    if (root_.node("against") == nullptr) return;
    scenario_.against.clear();
    for (const std::string& text : root_.texts("against", {}))
      scenario_.against.push_back(parsed_word<Against>(
          root_, "against", text,
          {{"single", Against::kSingle}, {"dp_replicate", Against::kDpReplicate}}));
    if (scenario_.against.empty())
      root_.fail("against", root_.node("against"), "names nothing to compare with");
  }

  std::optional<Plan> read_plan(const char* key) {
    const toml::node* node = root_.node(key);
    if (node == nullptr) return {};
    if (!node->is_table()) root_.fail(key, node, "must be a table of pattern = style");
    Plan plan;
    for (const auto& [pattern, style] : *node->as_table()) {
      if (!style.is_string()) root_.fail(key, &style, "a style is a text");
      plan.push_back({std::string(pattern.str()), style.as_string()->get(),
                      fmt::format("{}:{}", scenario_.file.string(), style.source().begin.line)});
    }
    return plan;
  }

  void read_layouts() {
    const RanksAs fallback = ranks_as(root_, RanksAs::kProcesses);
    const toml::node* node = root_.node("layouts");
    if (node != nullptr && !node->is_array()) root_.fail("layouts", node, "must be a list");
    if (node != nullptr)
      for (const toml::node& item : *node->as_array()) read_layout(item, fallback);
    if (scenario_.layouts.empty() && !scenario_.reference)
      root_.fail("layouts", node, "there is no run and no reference: nothing would be compared");
  }

  void read_level2() {
    const toml::node* node = root_.node("level2");
    if (node == nullptr) return;
    scenario_.level2 = working_types(root_, "level2");
    if (scenario_.layouts.empty())
      root_.fail("level2", node, "there is no layout whose step could be judged");
  }

  void read_fault() {
    if (root_.node("fault") == nullptr) return;
    TomlReader table = root_.table("fault");
    table.require("kind");
    FaultSpec& fault = scenario_.fault;
    fault.kind = table.text("kind", "");
    parsed_word<int>(table, "kind", fault.kind,
                     {{"drop_all_reduce", 0}, {"shift_rows", 0}, {"count_tokens_over_world", 0}});
    if (fault.kind != "count_tokens_over_world") table.require("at");
    if (fault.kind == "count_tokens_over_world" && scenario_.generation)
      table.fail("kind", table.node("kind"), "is a fault of training, there is only [generation]");
    fault.at = table.text("at", "");
    if (fault.kind == "shift_rows") fault.by = table.integer("by", 1, 1);
    table.refuse_others();
  }

  void read_layout(const toml::node& item, RanksAs fallback) {
    LayoutRun run;
    run.steps = scenario_.training.steps;
    run.ranks_as = fallback;
    bool sequence_parallel = root_.flag("sequence_parallel", false);
    std::string text;
    if (item.is_string()) {
      text = item.as_string()->get();
    } else if (item.is_table()) {
      TomlReader table(*item.as_table(), scenario_.file.string(), "layouts");
      table.require("layout");
      text = table.text("layout", "");
      for (const char* key : {"steps", "check"})
        if (scenario_.generation && table.node(key) != nullptr)
          table.fail(key, table.node(key), "does not go with [generation], which trains nothing");
      run.steps = table.integer("steps", run.steps, 1);
      if (run.steps > scenario_.training.steps)
        table.fail("steps", table.node("steps"),
                   fmt::format("is {}, more than the {} of the scenario", run.steps,
                               scenario_.training.steps));
      run.ranks_as = ranks_as(table, fallback);
      sequence_parallel = table.flag("sequence_parallel", sequence_parallel);
      read_check(table, run);
      if (run.steps < scenario_.training.steps && run.kinds.empty())
        table.fail(
            "steps", table.node("steps"),
            "is less than the scenario's: say in 'check' what is compared, as parameters and "
            "moments are those after all steps");
      table.refuse_others();
    } else {
      root_.fail("layouts", &item, "must be texts, or tables with a 'layout'");
    }
    try {
      run.config = config_from_layout(text);
      run.config.enable_sequence_parallel = sequence_parallel;
      run.config.tp_plan = scenario_.plans["tp_plan"];
      run.config.sp_plan = scenario_.plans["sp_plan"];
      run.config.fsdp_plan = scenario_.plans["fsdp_plan"];
      run.config.ep_plan = scenario_.plans["ep_plan"];
      run.config.ep_implementation = root_.text("ep_implementation", "auto");
      run.config.validate();
    } catch (const InputError& error) {
      root_.fail("layouts", &item, error.what());
    }
    check_layout(run, item);
    scenario_.layouts.push_back(std::move(run));
  }

  void check_layout(const LayoutRun& run, const toml::node& item) {
    if (run.ranks() > kMostRanks)
      root_.fail(
          "layouts", &item,
          fmt::format("'{}' has {} ranks, more than {}", run.name(), run.ranks(), kMostRanks));
    for (const LayoutRun& other : scenario_.layouts)
      if (other.config == run.config)
        root_.fail("layouts", &item, fmt::format("'{}' is named twice", run.name()));
    if (scenario_.generation) return;
    const bool alone = std::find(scenario_.against.begin(), scenario_.against.end(),
                                 Against::kSingle) == scenario_.against.end();
    if (run.ranks() == 1 || (alone && run.ranks() == run.config.dp_replicate_size) ||
        (alone && run.data_size() == 1))
      root_.fail("layouts", &item,
                 fmt::format("'{}' would be compared with itself, or with nothing", run.name()));
  }

  void read_check(TomlReader& table, LayoutRun& run) {
    const std::vector<std::pair<std::string, Kind>> words = {
        {"outputs", Kind::kOutput},       {"loss", Kind::kLoss},
        {"gradients", Kind::kGradient},   {"norm", Kind::kNorm},
        {"parameters", Kind::kParameter}, {"moments", Kind::kMoment}};
    for (const std::string& text : table.texts("check", {}))
      run.kinds.insert(parsed_word<Kind>(table, "check", text, words));
    const bool of_state = run.kinds.contains(Kind::kParameter) || run.kinds.contains(Kind::kMoment);
    if (of_state && run.steps != scenario_.training.steps)
      table.fail("check", table.node("check"), "parameters and moments are those after all steps");
    run.update = run.steps > 1 || run.kinds.empty() || of_state;
  }

  TomlReader root_;
  std::optional<RanksAs> override_;
  Scenario scenario_;
};

toml::table parsed(const fs::path& file) {
  const std::string text = read_text_file(file);
  try {
    return toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}: {}", file.string(), error.source().begin.line,
                                 std::string(error.description())));
  }
}

}  // namespace

Scenario read_scenario(const fs::path& file, std::optional<RanksAs> ranks_as) {
  const toml::table table = parsed(file);
  return ScenarioReader(table, file, ranks_as).read();
}

bool has_tag(const fs::path& file, const std::string& tag) {
  const toml::table table = parsed(file);
  const std::vector<std::string> tags = TomlReader(table, file.string()).texts("tags", {});
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::vector<fs::path> all_scenarios(const fs::path& folder) {
  SP_VALIDATE(fs::is_directory(folder), "{} is no folder of scenarios", folder.string());
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> find_scenarios(const fs::path& folder,
                                     const std::vector<std::string>& names) {
  std::vector<fs::path> found;
  for (const std::string& name : names) {
    const fs::path by_stem = folder / (name + ".toml");
    if (fs::is_regular_file(name)) {
      found.emplace_back(name);
    } else if (fs::is_regular_file(by_stem)) {
      found.push_back(by_stem);
    } else {
      std::vector<std::string> known;
      for (const fs::path& file : all_scenarios(folder)) known.push_back(file.stem().string());
      throw InputError(
          fmt::format("there is no scenario '{}': neither a file of that name nor {}; known are {}",
                      name, by_stem.string(), fmt::join(known, ", ")));
    }
  }
  return found;
}

}  // namespace shardproof
