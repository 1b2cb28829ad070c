// All checks of a plan against a model and a layout, without running anything.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

struct PlanChecks {
  // A parameter (of all layers together) with this share of the elements is large: "uncovered".
  double large = 0.01;
  // Notes count as errors.
  bool strict = false;
  // Whether rules of the model's own plan are held to have an effect, too.
  bool effects = true;
};

struct CheckedPlan {
  ResolvedPlan plan;  // rules at fault are left out
  // Those of plan.findings ("unmatched", "matched-twice", "unknown-style", "misfit", "tied",
  // "edges") and "uncovered", "cut", "copies", "no-effect", "ep"; errors first, layers folded.
  Findings findings;
};

CheckedPlan check_plan(Module& model, const DistributedConfig& config, const ModelPlans& plans,
                       const PlanChecks& checks = {});

}  // namespace shardproof
