// Rules that change nothing.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

// "no-effect": rules without which the resolved plan would be the same. One that a user wrote is an
// error; a note where it is the model's own once more, or where ep puts a rule of its own in its
// place. One that the model ships is a note (not `replicate` and `local_params`, which may be said
// for clarity). A rule with other findings is left out. One note for all rules of a user's plan
// that the layout does not ask for: tp_plan without tp, sp_plan without sequence parallel, ep_plan
// without ep.
// "ep": an error where ep > 1 and no rule puts anything on that axis.
// `plan`: what resolve_with_findings() gave for the same model and config.
Findings rules_without_effect(Module& model, const ResolvedPlan& plan,
                              const DistributedConfig& config, const ModelPlans& plans);

}  // namespace shardproof
