#include "models/qwen3_moe/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans qwen3_moe_plans() {
  ModelPlans plans = moe_decoder_plans({});
  plans.tp = merged(plans.tp, head_norm_rules());
  return plans;
}

}  // namespace shardproof
