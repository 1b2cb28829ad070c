#include "models/qwen3/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans qwen3_plans() {
  ModelPlans plans = decoder_plans();
  plans.tp = merged(plans.tp, head_norm_rules());
  return plans;
}

}  // namespace shardproof
