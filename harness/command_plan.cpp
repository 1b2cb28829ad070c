#include <CLI/CLI.hpp>
#include <iostream>

#include "analysis/check_plan.h"
#include "analysis/checkpoint_check.h"
#include "analysis/fold.h"
#include "analysis/model_dump.h"
#include "base/check.h"
#include "harness/command.h"
#include "harness/plan_report.h"
#include "io/text_file.h"
#include "models/json_fields.h"
#include "parallel/plan_file.h"

namespace shardproof {
namespace {

const std::map<std::string, at::ScalarType> kDtypes = {{"float64", at::kDouble},
                                                       {"float32", at::kFloat},
                                                       {"bfloat16", at::kBFloat16},
                                                       {"float16", at::kHalf}};

struct Options {
  std::string model, dump;
  std::string layout = "single";
  std::string plan;
  bool sequence_parallel = false, loss_parallel = false;
  bool strict = false, json = false;
  std::string dtype;
  std::string memory;
  bool train = false, generate = false, suggest = false;
  int64_t ranks = 0;
  BatchShape batch{1, 1024};
  FamilyRegistry families;
};

// What a plan is checked against.
struct Subject {
  std::string name = {};
  std::shared_ptr<Module> model = {};
  ModelPlans plans = {};
  DistributedConfig config = {};
  std::string dtype = "float32";
  bool has_code = true;
  Findings findings = {};
  std::vector<std::string> not_checked = {};
};

// The type that the config states, as its older versions too spell it.
std::string stated_dtype(const JsonFields& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.has(key)) return config.text(key);
  return "float32";
}

void take_dump(Subject& subject, const ModelDump& dump, const std::string& source) {
  subject.name = fmt::format("{}, {}", dump.model, source);
  subject.model = model_from_dump(dump, subject.config);
  subject.plans = dump.plans;
  subject.has_code = false;
  subject.not_checked.push_back(
      "how values lie between modules (\"edges\"), what is sent, and the memory of activations: "
      "these need the code of the model family");
}

bool is_known(const FamilyRegistry& families, const std::string& model_type) {
  const auto names = families.names();
  return std::find(names.begin(), names.end(), model_type) != names.end();
}

Subject from_directory(const Options& options, DistributedConfig config) {
  Subject subject{.config = std::move(config)};
  const std::filesystem::path directory = options.model;
  SP_VALIDATE(std::filesystem::is_directory(directory), "--model {}: there is no such directory",
              options.model);
  const std::string origin = (directory / "config.json").string();
  const std::string text = read_text_file(origin);
  const JsonFields fields = JsonFields::parse(text, origin);
  subject.dtype = stated_dtype(fields);
  const bool weights = std::filesystem::exists(directory / "model.safetensors") ||
                       std::filesystem::exists(directory / "model.safetensors.index.json");
  if (is_known(options.families, fields.text("model_type"))) {
    const LoadedModel loaded = build_from_directory(options.families, options.model);
    subject.name = fmt::format("{}, {}", loaded.family->name, options.model);
    subject.model = loaded.causal_lm.model;
    subject.plans = loaded.family->plans;
    if (weights)
      subject.findings =
          check_against(CheckpointFiles(directory), *subject.model, loaded.family->weights);
    return subject;
  }
  SP_VALIDATE(weights,
              "{}: the model type '{}' is not known (known are {}), and there are no safetensors "
              "files to take names and shapes from; reference/plan_dump.py makes a file for --dump",
              origin, fields.text("model_type"), fmt::join(options.families.names(), ", "));
  take_dump(subject, dump_of_files(CheckpointFiles(directory), text, origin), options.model);
  subject.not_checked.insert(
      subject.not_checked.begin(),
      fmt::format(
          "the plan of '{}' itself, and which modules are Linear: its names and shapes were "
          "taken from the safetensors headers",
          fields.text("model_type")));
  return subject;
}

Subject read_subject(const Options& options) {
  SP_VALIDATE(options.model.empty() != options.dump.empty(), "give either --model or --dump");
  DistributedConfig config = config_from_layout(options.layout);
  if (!options.plan.empty()) set_plans(config, read_plan_file(options.plan));
  config.enable_sequence_parallel = options.sequence_parallel;
  if (options.loss_parallel) {
    SP_VALIDATE(!config.tp_plan || !config.tp_plan->empty(),
                "--loss-parallel is a rule for lm_head; the tp_plan of {} is empty, which means no "
                "rule at all",
                options.plan);
    config.tp_plan = merged(config.tp_plan.value_or(Plan{}),
                            {{"lm_head", "colwise_loss_parallel", "--loss-parallel"}});
  }
  config.validate();
  if (!options.model.empty()) return from_directory(options, std::move(config));
  const ModelDump dump =
      parse_dump(read_text_file(options.dump, /*limit=*/int64_t{1} << 30), options.dump);
  Subject subject{.config = std::move(config), .dtype = dump.dtype};
  take_dump(subject, dump, options.dump);
  return subject;
}

void add_memory(PlanReport& report, const Options& options, const Subject& subject,
                const ResolvedPlan& plan, at::ScalarType dtype) {
  if (options.memory.empty()) return;
  const int64_t available = parse_bytes(options.memory);
  MemoryOptions memory{.sizes = ItemSizes::all(static_cast<int64_t>(c10::elementSize(dtype))),
                       .train = options.batch,
                       .generate = options.batch};
  const bool all = !options.train && !options.generate;
  const auto wanted = [&](Phase phase) {
    return phase == Phase::kLoad || all ||
           (phase == Phase::kTrain ? options.train : options.generate);
  };
  for (Verdict& verdict : fits(*subject.model, plan, available, memory))
    if (wanted(verdict.use.phase)) report.memory.push_back(std::move(verdict));
  if (!options.suggest) return;
  SuggestOptions suggestion{.available = available,
                            .phases = {Phase::kLoad},
                            .global_batch = options.batch.batch,
                            .memory = memory,
                            .dtype = dtype};
  for (const Phase phase : {Phase::kGenerate, Phase::kTrain})
    if (wanted(phase)) suggestion.phases.push_back(phase);
  report.suggestions =
      suggest(*subject.model, subject.config, subject.plans, options.ranks, suggestion);
}

int run(const Options& options) {
  Subject subject = read_subject(options);
  SP_VALIDATE(
      !options.suggest || (!options.memory.empty() && options.ranks > 0),
      "--suggest takes --memory and --ranks: how much each rank has, and how many there are");
  SP_VALIDATE(!options.suggest || subject.config.ep_size == 1,
              "--suggest goes over dp_replicate, fsdp and tp: leave ep out of --layout {}",
              options.layout);
  if (!options.dtype.empty()) subject.dtype = options.dtype;
  SP_VALIDATE(kDtypes.contains(subject.dtype),
              "the model is of type {}, which is not known: give --dtype", subject.dtype);
  const at::ScalarType dtype = kDtypes.at(subject.dtype);
  CheckedPlan checked =
      check_plan(*subject.model, subject.config, subject.plans, {.strict = options.strict});
  const ResolvedPlan& plan = checked.plan;
  PlanReport report{.model = subject.name,
                    .layout = subject.config.layout(),
                    .mesh = plan.mesh,
                    .dtype = subject.dtype,
                    .findings = std::move(subject.findings),
                    .broken = has_errors(plan.findings),
                    .not_checked = subject.not_checked,
                    .ranks = first_middle_last(plan.mesh)};
  report.findings.insert(report.findings.end(), checked.findings.begin(), checked.findings.end());
  if (options.strict)
    for (Finding& finding : report.findings) finding.severity = Finding::Severity::kError;
  report.findings = folded(report.findings);
  const ItemSizes sizes = ItemSizes::all(static_cast<int64_t>(c10::elementSize(dtype)));
  report.parameters = parameter_table(*subject.model, plan, report.ranks, sizes);
  report.state = state_of(*subject.model, plan, sizes);
  report.coverage = coverage_of(*subject.model, plan);
  // The flow of values has no meaning where it disagrees with itself.
  if (subject.has_code && !report.broken) {
    report.traffic = {.batch = options.batch,
                      .rank = report.state.fullest.rank,
                      .traffic = traffic_of(*subject.model, plan, options.batch,
                                            report.state.fullest.rank, {.dtype = dtype})};
    add_memory(report, options, subject, plan, dtype);
  }
  if (options.json) {
    print_json(report, std::cout);
  } else {
    print_text(report, std::cout);
  }
  return has_errors(report.findings) ? 1 : 0;
}

}  // namespace

CommandBody command_plan(CLI::App& app, const FamilyRegistry& families) {
  auto options = std::make_shared<Options>();
  options->families = families;
  app.add_option("--model", options->model,
                 "directory with config.json; weights are not read, headers of safetensors are");
  app.add_option("--dump", options->dump,
                 "instead: what reference/plan_dump.py wrote of any model");
  app.add_option("--layout", options->layout, "such as fsdp=32,tp=8")->capture_default_str();
  app.add_option("--plan", options->plan,
                 "file of rules (.json or .toml), which go before the model's own");
  app.add_flag("--sequence-parallel", options->sequence_parallel,
               "norms and residual stream cut by tokens");
  app.add_flag("--loss-parallel", options->loss_parallel, "the loss on logits cut by vocabulary");
  app.add_flag("--strict", options->strict, "notes count as errors");
  app.add_option("--dtype", options->dtype, "of parameters and values; default: that of the config")
      ->check(CLI::IsMember(kDtypes));
  app.add_option("--batch", options->batch.batch, "rows of each data rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--length", options->batch.length, "tokens of a row")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--memory", options->memory, "of a rank, such as 40GiB: does the plan fit?");
  app.add_flag("--train", options->train, "with --memory: loading and training");
  app.add_flag("--generate", options->generate, "with --memory: loading and generating");
  app.add_flag("--suggest", options->suggest, "with --memory and --ranks: the layouts that fit");
  app.add_option("--ranks", options->ranks, "with --suggest: how many there are");
  app.add_flag("--json", options->json, "as JSON");
  return [options](const ProgramWorld& world) {
    int status = 0;
    world.agreed([&] {
      if (world.rank() == 0) status = run(*options);
    });
    return static_cast<int>(world.agreed_max(status));
  };
}

}  // namespace shardproof
