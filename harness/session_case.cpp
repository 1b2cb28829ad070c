#include "harness/session_case.h"

#include <fnmatch.h>

#include "harness/level2_check.h"
#include "harness/working_type.h"

namespace shardproof {
namespace {

// The tests of one model of a scenario, those that share a truth together.
std::vector<Case> cases_of(const Scenario& scenario, const std::filesystem::path& model) {
  std::vector<Case> cases;
  if (scenario.generation) {
    for (const at::ScalarType type : scenario.generation->dtypes)
      for (const LayoutRun& run : scenario.layouts)
        cases.push_back({&scenario, model, &run, {}, type});
    return cases;
  }
  if (scenario.reference) cases.push_back({&scenario, model, nullptr, {}, {}});
  for (const LayoutRun& run : scenario.layouts) cases.push_back({&scenario, model, &run, {}, {}});
  for (const at::ScalarType type : scenario.level2)
    for (const LayoutRun& run : scenario.layouts)
      if (!level2_kinds(run).empty()) cases.push_back({&scenario, model, &run, type, {}});
  return cases;
}

}  // namespace

std::string Case::layout() const { return run != nullptr ? run->name() : "single"; }

std::string Case::dtype() const {
  if (run == nullptr) return "";
  return working_type_name(generated.value_or(level2.value_or(at::kDouble)));
}

std::string Case::test() const {
  const std::string what = run != nullptr ? run->name() : "transformers";
  return model_name(model) + "/" + what + (level2 || generated ? " " + dtype() : "");
}

std::vector<Case> all_cases(const std::vector<Scenario>& scenarios, const std::string& filter) {
  std::vector<Case> cases;
  for (const Scenario& scenario : scenarios)
    for (const std::filesystem::path& model : scenario.models)
      for (const Case& one : cases_of(scenario, model))
        if (filter.empty() || fnmatch(filter.c_str(), one.name().c_str(), 0) == 0)
          cases.push_back(one);
  return cases;
}

}  // namespace shardproof
