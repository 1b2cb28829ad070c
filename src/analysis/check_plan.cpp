#include "analysis/check_plan.h"

#include "analysis/coverage.h"
#include "analysis/cut_checks.h"
#include "analysis/effect_checks.h"
#include "analysis/fold.h"

namespace shardproof {

CheckedPlan check_plan(Module& model, const DistributedConfig& config, const ModelPlans& plans,
                       const PlanChecks& checks) {
  CheckedPlan checked{.plan = resolve_with_findings(model, config.mesh(), config, plans),
                      .findings = {}};
  Findings findings = checked.plan.findings;
  const auto add = [&](Findings more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  if (checks.effects) add(rules_without_effect(model, checked.plan, config, plans));
  add(uncovered(model, checked.plan, checks.large));
  add(uneven_cuts(model, checked.plan));
  if (checks.strict)
    for (Finding& finding : findings) finding.severity = Finding::Severity::kError;
  checked.findings = folded(findings);
  return checked;
}

}  // namespace shardproof
