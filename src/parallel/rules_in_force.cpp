#include "parallel/rules_in_force.h"

#include <algorithm>

namespace shardproof {
namespace {

// The rules that hold. Those that a user gave carry an origin from here on: they must match.
Plan effective(const Plan& shipped, std::optional<Plan> given, const std::string& field) {
  if (!given) return shipped;
  for (PlanRule& rule : *given) {
    if (rule.origin.empty()) rule.origin = field;
  }
  return given->empty() ? Plan{} : merged(shipped, *given);
}

// Without the rules of tensor parallelism that experts on ranks of their own replace: of the module
// that an expert-parallel rule names and of what is inside it.
Plan without(const Plan& rules, const Plan& expert_rules) {
  Plan left;
  for (const PlanRule& rule : rules) {
    const bool replaced =
        std::any_of(expert_rules.begin(), expert_rules.end(), [&](const PlanRule& expert) {
          return rule.pattern == expert.pattern || rule.pattern.starts_with(expert.pattern + ".");
        });
    if (!replaced) left.push_back(rule);
  }
  return left;
}

// The style of a module that dispatches is that of the implementation; `auto` means all_to_all.
std::string meaning(const std::string& style, const std::string& implementation) {
  if (style != "ep_dispatch_experts") return style;
  return style + "/" + (implementation == "auto" ? "all_to_all" : implementation);
}

}  // namespace

RulesInForce rules_in_force(const DistributedConfig& config, const ModelPlans& plans,
                            const MeshShape& mesh) {
  RulesInForce result;
  const Plan ep = mesh.size("ep") > 1 ? effective(plans.ep, config.ep_plan, "ep_plan") : Plan{};
  if (mesh.size("tp") > 1) {
    Plan tp = effective(plans.tp, config.tp_plan, "tp_plan");
    if (config.enable_sequence_parallel)
      tp = merged(tp, effective(plans.sp, config.sp_plan, "sp_plan"));
    for (const PlanRule& rule : without(tp, ep)) result.tp.push_back({rule, rule.style});
  }
  for (const PlanRule& rule : ep)
    result.ep.push_back({rule, meaning(rule.style, config.ep_implementation)});
  result.fsdp = effective(plans.fsdp, config.fsdp_plan, "fsdp_plan");
  return result;
}

}  // namespace shardproof
