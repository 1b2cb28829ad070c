#include "harness/layout_check.h"

namespace shardproof {
namespace {

// Empty where the run would be compared with itself.
std::optional<DistributedConfig> counterpart(Against against, const LayoutRun& run) {
  DistributedConfig config;
  if (against == Against::kDpReplicate) config.dp_replicate_size = run.data_size();
  if (against == Against::kDpReplicate && (config == run.config || run.data_size() == 1)) return {};
  return config;
}

std::set<Kind> kinds_of(Against against, const LayoutRun& run) {
  std::set<Kind> kinds = run.kinds;
  if (against == Against::kSingle) return kinds;
  if (kinds.empty())
    kinds = {Kind::kLoss, Kind::kGradient, Kind::kNorm, Kind::kParameter, Kind::kMoment};
  kinds.erase(Kind::kOutput);
  return kinds;
}

struct Target {
  std::string name;
  const RunRecord* record;
  ComparisonOptions options;
};

}  // namespace

std::vector<LayoutOutcome> check_layout(Launcher& launcher, OracleStore& oracles,
                                        const Scenario& scenario,
                                        const std::filesystem::path& model, const LayoutRun& run,
                                        const RunSeams& seams) {
  TrainingSpec spec = scenario.training;
  spec.model.directory = model;
  std::vector<Target> targets;
  for (const Against against : scenario.against) {
    const std::optional<DistributedConfig> config = counterpart(against, run);
    if (!config) continue;
    const RunRecord& record = oracles.get(launcher, spec, *config);
    targets.push_back(
        {config->layout(), &record, {run.steps, kinds_of(against, run), scenario.allow_zero}});
  }

  spec.steps = run.steps;
  spec.update = run.update;
  spec.kinds = run.kinds;
  std::vector<LayoutOutcome> outcomes(targets.size());
  launcher.run(run.ranks(), model_name(model) + " on " + run.name(), [&](CommPtr comm) {
    std::vector<RunComparison> comparisons;
    for (const Target& target : targets) comparisons.emplace_back(*target.record, target.options);
    const ValueSink compare = [&](const Value& value) {
      for (size_t i = 0; i < targets.size(); ++i)
        if (targets[i].options.kinds.empty() || targets[i].options.kinds.contains(value.key.kind))
          comparisons[i].take(value);
    };
    run_training(comm, spec, run.config, {compare}, seams);
    for (size_t i = 0; i < targets.size(); ++i) {
      std::vector<Row> rows = comparisons[i].finish(*comm);
      if (comm->rank() == 0) outcomes[i] = {targets[i].name, std::move(rows)};
    }
  });
  return outcomes;
}

}  // namespace shardproof
