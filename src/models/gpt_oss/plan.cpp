#include "models/gpt_oss/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans gpt_oss_plans() {
  // Gate and up of a feature lie side by side: any cut between pairs serves.
  ModelPlans plans =
      moe_decoder_plans({.router_name = "router", .gate_up_style = "colwise", .expert_bias = true});
  plans.tp =
      merged(without_dense_mlp(plans.tp), {{"model.layers.*.self_attn.sinks", "local_params"}});
  return plans;
}

}  // namespace shardproof
