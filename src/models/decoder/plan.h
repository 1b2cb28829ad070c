// The plans of a decoder whose layers have Llama's modules; families add to them or replace rules.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

// tp: embedding, separate projections of attention and MLP, lm_head. fsdp: a unit for the
// embedding, each layer, the last norm and lm_head. sp: the norms input_layernorm,
// post_attention_layernorm and norm.
ModelPlans decoder_plans();

// Norms over the head dim see the heads of their rank only: their gradient is a sum over ranks.
Plan head_norm_rules();

// decoder_plans with experts in the MLPs' place: tp cuts each expert (gate_up_proj's features by
// `gate_up_style`, packed_colwise or colwise), sp has the router called `router_name`, ep puts
// whole experts on each rank. Biases of experts have rules where `expert_bias` says so.
struct MoePlanOptions {
  std::string router_name = "gate";
  std::string gate_up_style = "packed_colwise";
  bool expert_bias = false;
};
ModelPlans moe_decoder_plans(const MoePlanOptions& options);

// Takes away the rules of decoder_plans for dense MLPs: for families that have none.
Plan without_dense_mlp(const Plan& plan);

}  // namespace shardproof
