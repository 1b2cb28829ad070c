#include "analysis/coverage.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "analysis/fold.h"
#include "base/check.h"

namespace shardproof {
namespace {

int64_t elements_of(const Parameter& parameter) {
  return std::accumulate(parameter.shape().begin(), parameter.shape().end(), int64_t{1},
                         std::multiplies<>());
}

// Canonical names of the parameters of experts.
std::set<std::string> names_of_experts(Module& model) {
  std::set<std::string> names;
  for (const Module* module : model.modules())
    if (module->type() == "Experts")
      for (const auto& [local, parameter] : module->parameters()) names.insert(parameter->name());
  return names;
}

}  // namespace

Coverage coverage_of(Module& model, const ResolvedPlan& plan) {
  std::set<std::string> covered;  // paths of modules, names of parameters
  for (const ResolvedModule& module : plan.modules)
    if (module.style == "replicate") covered.insert(module.path);
  for (const ResolvedParameter& parameter : plan.parameters)
    if (!parameter.style.empty()) covered.insert(parameter.name);
  const auto is_covered = [&](std::string name) {
    while (!covered.contains(name)) {
      const size_t dot = name.rfind('.');
      if (dot == name.npos) return false;
      name.resize(dot);
    }
    return true;
  };
  Coverage coverage;
  std::map<std::pair<std::string, std::vector<int64_t>>, size_t> index;
  for (const ParamPtr& parameter : model.all_parameters()) {
    const int64_t own = elements_of(*parameter);
    coverage.elements += own;
    const auto& names = parameter->names();
    if (std::any_of(names.begin(), names.end(), is_covered)) continue;
    const auto [at, fresh] = index.try_emplace(
        {starred(parameter->name()).pattern, parameter->shape()}, coverage.holes.size());
    if (fresh) coverage.holes.push_back({.names = {}, .shape = parameter->shape()});
    Uncovered& hole = coverage.holes[at->second];
    hole.names.push_back(parameter->name());
    hole.elements += own;
  }
  std::stable_sort(coverage.holes.begin(), coverage.holes.end(),
                   [](const Uncovered& a, const Uncovered& b) { return a.elements > b.elements; });
  return coverage;
}

Findings uncovered(Module& model, const ResolvedPlan& plan, double share) {
  Findings findings;
  const bool cut = plan.mesh.size("tp") > 1;
  if (!cut && plan.mesh.size("ep") == 1) return findings;
  const std::set<std::string> experts = names_of_experts(model);
  const Coverage coverage = coverage_of(model, plan);
  for (const Uncovered& hole : coverage.holes) {
    const double part = static_cast<double>(hole.elements) / static_cast<double>(coverage.elements);
    if (part < share) break;
    // The ep axis alone is for experts.
    if (!cut && !experts.contains(hole.names.front())) continue;
    findings.push_back(
        {.severity = Finding::Severity::kNote,
         .check = "uncovered",
         .rule = {},
         .subject = hole.names.front(),
         .message =
             fmt::format("no rule covers {} ({}{}, {:.1f} % of the model's elements): every "
                         "rank of the {} axis holds and computes all of it",
                         folded(hole.names), fmt::join(hole.shape, "x"),
                         hole.names.size() > 1 ? " each" : "", 100.0 * part, cut ? "tp" : "ep")});
  }
  return findings;
}

}  // namespace shardproof
