#include "analysis/effect_checks.h"

#include <algorithm>

#include "base/check.h"
#include "parallel/style.h"

namespace shardproof {
namespace {

// Two plans do the same if all that the executor reads of them is equal.
bool same_effect(const ResolvedPlan& a, const ResolvedPlan& b) {
  const auto ports_equal = [](const std::vector<ResolvedPort>& x,
                              const std::vector<ResolvedPort>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const ResolvedPort& p, const ResolvedPort& q) {
                        return p.name == q.name && p.axis == q.axis && p.edge == q.edge;
                      });
  };
  const auto acts = [](const ResolvedModule& module) {
    const auto moves = [](const ResolvedPort& port) { return !port.edge.is_identity(); };
    return std::any_of(module.inputs.begin(), module.inputs.end(), moves) ||
           std::any_of(module.outputs.begin(), module.outputs.end(), moves);
  };
  const auto acting = [&](const ResolvedPlan& plan) {
    std::map<std::string, const ResolvedModule*> modules;
    for (const ResolvedModule& module : plan.modules)
      if (acts(module)) modules[module.path] = &module;
    return modules;
  };
  const auto modules_a = acting(a);
  const auto modules_b = acting(b);
  if (!std::equal(modules_a.begin(), modules_a.end(), modules_b.begin(), modules_b.end(),
                  [&](const auto& x, const auto& y) {
                    return x.first == y.first && ports_equal(x.second->inputs, y.second->inputs) &&
                           ports_equal(x.second->outputs, y.second->outputs);
                  }))
    return false;
  if (!std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                  b.parameters.end(), [](const ResolvedParameter& x, const ResolvedParameter& y) {
                    return x.name == y.name && x.edge == y.edge &&
                           x.kept_placements == y.kept_placements &&
                           x.view_placements == y.view_placements && x.unit == y.unit;
                  }))
    return false;
  if (!std::equal(a.units.begin(), a.units.end(), b.units.begin(), b.units.end(),
                  [](const ResolvedUnit& x, const ResolvedUnit& y) {
                    return x.path == y.path && x.free_after_forward == y.free_after_forward &&
                           x.parameters == y.parameters;
                  }))
    return false;
  return a.inputs == b.inputs && a.outputs == b.outputs && a.findings.size() == b.findings.size();
}

Plan without(const Plan& plan, size_t left_out) {
  Plan result = plan;
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(left_out));
  return result;
}

const PlanRule* find(const Plan& plan, const std::string& pattern) {
  const auto hit = std::find_if(plan.begin(), plan.end(),
                                [&](const PlanRule& rule) { return rule.pattern == pattern; });
  return hit == plan.end() ? nullptr : &*hit;
}

// By any of its names; FSDP's styles are not in the registry.
bool same_style(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const Style* style = shipped_styles().find(a);
  return style != nullptr && style == shipped_styles().find(b);
}

Finding as_note(Finding finding) {
  finding.severity = Finding::Severity::kNote;
  return finding;
}

class Checker {
 public:
  Checker(Module& model, const ResolvedPlan& plan, const DistributedConfig& config,
          const ModelPlans& plans)
      : model_(model), plan_(plan), config_(config), plans_(plans) {
    if (plan.mesh.size("ep") == 1) return;
    expert_rules_ = plans.ep;
    if (config.ep_plan)
      expert_rules_ = config.ep_plan->empty() ? Plan{} : merged(plans.ep, *config.ep_plan);
  }

  Findings run() {
    const int64_t tp = plan_.mesh.size("tp");
    const int64_t ep = plan_.mesh.size("ep");
    if (tp > 1) {
      given(&DistributedConfig::tp_plan, plans_.tp, "tp_plan");
      // An ep plan takes rules of the tp plan over.
      if (ep == 1) shipped(&ModelPlans::tp, config_.tp_plan);
    } else {
      idle(config_.tp_plan, "tp_plan", "the layout has no tp axis");
    }
    if (tp > 1 && config_.enable_sequence_parallel) {
      given(&DistributedConfig::sp_plan, plans_.sp, "sp_plan");
    } else {
      idle(config_.sp_plan, "sp_plan",
           tp > 1 ? "sequence parallel is off" : "the layout has no tp axis");
    }
    if (ep > 1) {
      given(&DistributedConfig::ep_plan, plans_.ep, "ep_plan");
      experts(ep);
    } else {
      idle(config_.ep_plan, "ep_plan", "the layout has no ep axis");
    }
    given(&DistributedConfig::fsdp_plan, plans_.fsdp, "fsdp_plan");
    return std::move(findings_);
  }

 private:
  // One note for all rules of a plan that is not asked for anything.
  void idle(const std::optional<Plan>& rules, const std::string& name, const std::string& why) {
    if (!rules || rules->empty()) return;
    const std::string& origin = rules->front().origin;
    findings_.push_back(
        {.severity = Finding::Severity::kNote,
         .check = "no-effect",
         .rule = rules->front(),
         .subject = "",
         .message = fmt::format("the {} rules of the {}{} do nothing here: {}", rules->size(), name,
                                origin.empty() ? "" : fmt::format(" ({})", origin), why)});
  }

  // An ep axis that nothing lies on.
  void experts(int64_t ranks) {
    const bool used =
        std::any_of(plan_.parameters.begin(), plan_.parameters.end(),
                    [](const ResolvedParameter& parameter) { return parameter.axis == "ep"; });
    if (used || has_errors(plan_.findings)) return;
    findings_.push_back(
        {.severity = Finding::Severity::kError,
         .check = "ep",
         .rule = {},
         .subject = "",
         .message = fmt::format("ep_size is {}, but no rule of an ep_plan holds for this model: "
                                "leave ep out of the layout, or give rules for its experts",
                                ranks)});
  }

  // The rule of expert parallelism that stands in for one of tensor parallelism.
  const PlanRule* replaced_by(const PlanRule& rule) const {
    for (const PlanRule& expert : expert_rules_)
      if (rule.pattern == expert.pattern || rule.pattern.starts_with(expert.pattern + "."))
        return &expert;
    return nullptr;
  }

  bool is_found_already(const PlanRule& rule) const {
    return std::any_of(plan_.findings.begin(), plan_.findings.end(), [&](const Finding& finding) {
      return finding.rule == rule && finding.check != "edges";
    });
  }

  void given(std::optional<Plan> DistributedConfig::*field, const Plan& model_rules,
             const std::string& name) {
    const std::optional<Plan>& rules = config_.*field;
    if (!rules) return;
    for (size_t i = 0; i < rules->size(); ++i) {
      PlanRule rule = (*rules)[i];
      if (rule.origin.empty()) rule.origin = name;
      if (is_found_already(rule)) continue;
      const PlanRule* own = find(model_rules, rule.pattern);
      if (const PlanRule* expert =
              name == "ep_plan" || name == "fsdp_plan" ? nullptr : replaced_by(rule)) {
        findings_.push_back(as_note(
            about_rule("no-effect", rule, "",
                       fmt::format("does nothing with ep, which puts another in its place: {}",
                                   named(*expert)))));
        continue;
      }
      if (rule.style.empty() && own == nullptr) {
        findings_.push_back(about_rule(
            "no-effect", rule, "", "takes away a rule that the model's own plan does not have"));
        continue;
      }
      DistributedConfig reduced = config_;
      reduced.*field = without(*rules, i);
      // An empty plan would mean no rule at all.
      if ((reduced.*field)->empty()) (reduced.*field).reset();
      if (!same_effect(plan_, resolve_with_findings(model_, plan_.mesh, reduced, plans_))) continue;
      Finding finding = about_rule(
          "no-effect", rule, "",
          own != nullptr
              ? fmt::format("changes nothing: the model's own rule for it is \"{}\"", own->style)
              : "changes nothing: without it each module and parameter would lie as it does");
      // Said once more, as plans that are written for several models do.
      if (own != nullptr && same_style(own->style, rule.style))
        finding = as_note(std::move(finding));
      findings_.push_back(std::move(finding));
    }
  }

  void shipped(Plan ModelPlans::*field, const std::optional<Plan>& given) {
    if (given && given->empty()) return;
    for (size_t i = 0; i < (plans_.*field).size(); ++i) {
      const PlanRule& rule = (plans_.*field)[i];
      // What a plan says out loud: "replicate" where others would cut, and "local_params" on a
      // module, which transformers' modules need and those here do not.
      if (rule.style == "replicate" || rule.style == "local_params") continue;
      if ((given && find(*given, rule.pattern) != nullptr) || is_found_already(rule)) continue;
      ModelPlans reduced = plans_;
      reduced.*field = without(plans_.*field, i);
      if (same_effect(plan_, resolve_with_findings(model_, plan_.mesh, config_, reduced)))
        findings_.push_back(about_rule(
            "no-effect", rule, "",
            "changes nothing: without it each module and parameter would lie as it does"));
    }
  }

  Module& model_;
  const ResolvedPlan& plan_;
  const DistributedConfig& config_;
  const ModelPlans& plans_;
  Plan expert_rules_;  // none without an ep axis
  Findings findings_;
};

}  // namespace

Findings rules_without_effect(Module& model, const ResolvedPlan& plan,
                              const DistributedConfig& config, const ModelPlans& plans) {
  return Checker(model, plan, config, plans).run();
}

}  // namespace shardproof
