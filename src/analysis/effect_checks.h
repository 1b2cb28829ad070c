// Rules that change nothing.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

// "no-effect": rules without which the resolved plan would be the same: one that a user wrote (an
// error), be it equal to the model's own, and one that the model ships (a note; not `replicate` and
// `local_params`, which may be said for clarity). A rule with other findings is left out. At tp=1
// one note says how many rules of a user's tp_plan do nothing there. `plan`: what
// resolve_with_findings() gave for the same model and config.
Findings rules_without_effect(Module& model, const ResolvedPlan& plan,
                              const DistributedConfig& config, const ModelPlans& plans);

}  // namespace shardproof
