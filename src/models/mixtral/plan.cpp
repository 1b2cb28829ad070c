#include "models/mixtral/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans mixtral_plans() {
  ModelPlans plans = moe_decoder_plans({});
  plans.tp = without_dense_mlp(plans.tp);
  return plans;
}

}  // namespace shardproof
