#include "harness/level2_check.h"

#include "harness/rounding.h"
#include "harness/working_type.h"

namespace shardproof {

std::set<Kind> level2_kinds(const LayoutRun& run) {
  if (run.kinds.empty()) return level2_kinds();
  std::set<Kind> kinds;
  for (const Kind kind : run.kinds)
    if (level2_kinds().contains(kind)) kinds.insert(kind);
  return kinds;
}

LayoutOutcome check_level2(Launcher& launcher, OracleStore& oracles, const Scenario& scenario,
                           const std::filesystem::path& model, const LayoutRun& run,
                           at::ScalarType type, const RunSeams& seams) {
  TrainingSpec spec = scenario.training;
  spec.model.directory = model;
  const RunRecord& truth = oracles.get(launcher, level2_truth(spec, type), {});
  spec = level2_run(std::move(spec), type);
  const RoundingErrors& rounding = oracles.rounding(launcher, spec, truth);
  spec.kinds = level2_kinds(run);

  LayoutOutcome outcome{"float64 truth", {}};
  const std::string what =
      fmt::format("{} on {} in {}", model_name(model), run.name(), working_type_name(type));
  launcher.run(run.ranks(), what, [&](const CommPtr& comm) {
    RunComparison comparison(truth, {.steps = 1,
                                     .kinds = spec.kinds,
                                     .allow_zero = scenario.allow_zero,
                                     .rounding = &rounding});
    run_training(comm, spec, run.config, {[&](const Value& value) { comparison.take(value); }},
                 seams);
    std::vector<Row> rows = comparison.finish(*comm);
    if (comm->rank() == 0) outcome.rows = std::move(rows);
  });
  return outcome;
}

}  // namespace shardproof
