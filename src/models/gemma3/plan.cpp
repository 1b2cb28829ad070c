#include "models/gemma3/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans gemma3_plans() {
  ModelPlans plans = decoder_plans();
  plans.tp = merged(plans.tp, head_norm_rules());
  plans.sp = merged(plans.sp, {{"model.layers.*.pre_feedforward_layernorm", "sequence_parallel"},
                               {"model.layers.*.post_feedforward_layernorm", "sequence_parallel"}});
  return plans;
}

}  // namespace shardproof
