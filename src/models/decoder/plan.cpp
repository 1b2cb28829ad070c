#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans decoder_plans() {
  return {
      .tp =
          {
              {"model.embed_tokens", "embedding_rowwise"},
              {"model.layers.*.self_attn.q_proj", "colwise"},
              {"model.layers.*.self_attn.k_proj", "colwise"},
              {"model.layers.*.self_attn.v_proj", "colwise"},
              {"model.layers.*.self_attn.o_proj", "rowwise"},
              {"model.layers.*.mlp.gate_proj", "colwise"},
              {"model.layers.*.mlp.up_proj", "colwise"},
              {"model.layers.*.mlp.down_proj", "rowwise"},
              {"lm_head", "colwise_gather_output"},
          },
      .fsdp =
          {
              {"model.embed_tokens", "free_full_weight"},
              {"model.layers.*", "free_full_weight"},
              {"model.norm", "keep_full_weight"},
              {"lm_head", "keep_full_weight"},
          },
      .sp =
          {
              {"model.layers.*.input_layernorm", "sequence_parallel"},
              {"model.layers.*.post_attention_layernorm", "sequence_parallel"},
              {"model.norm", "sequence_parallel"},
          },
  };
}

Plan head_norm_rules() {
  return {{"model.layers.*.self_attn.q_norm", "replicated_with_grad_allreduce"},
          {"model.layers.*.self_attn.k_norm", "replicated_with_grad_allreduce"}};
}

ModelPlans moe_decoder_plans(const MoePlanOptions& options) {
  const std::string mlp = "model.layers.*.mlp.";
  const std::string experts = mlp + "experts";
  Plan tp = {{experts + ".gate_up_proj", options.gate_up_style},
             {experts + ".down_proj", "rowwise"},
             {experts, "moe_tp_experts"}};
  Plan ep = {{experts + ".gate_up_proj", "grouped_gemm"},
             {experts + ".down_proj", "grouped_gemm"},
             {experts, "ep_dispatch_experts"}};
  if (options.expert_bias) {
    tp.push_back({experts + ".gate_up_proj_bias", options.gate_up_style});
    tp.push_back({experts + ".down_proj_bias", "rowwise"});
    ep.push_back({experts + ".gate_up_proj_bias", "grouped_gemm"});
    ep.push_back({experts + ".down_proj_bias", "grouped_gemm"});
  }
  ModelPlans plans = decoder_plans();
  plans.tp = merged(plans.tp, tp);
  plans.sp = merged(plans.sp, {{mlp + options.router_name, "sequence_parallel"}});
  plans.ep = ep;
  return plans;
}

Plan without_dense_mlp(const Plan& plan) {
  return merged(plan, {{"model.layers.*.mlp.gate_proj", ""},
                       {"model.layers.*.mlp.up_proj", ""},
                       {"model.layers.*.mlp.down_proj", ""}});
}

}  // namespace shardproof
