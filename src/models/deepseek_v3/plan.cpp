#include "models/deepseek_v3/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans deepseek_v3_plans() {
  const std::string attention = "model.layers.*.self_attn.";
  const std::string shared = "model.layers.*.mlp.shared_experts.";
  ModelPlans plans = moe_decoder_plans({});
  plans.tp = merged(plans.tp, {{attention + "k_proj", ""},
                               {attention + "v_proj", ""},
                               {attention + "q_b_proj", "colwise"},
                               {attention + "kv_a_proj_with_mqa", "mla_kv_a_proj"},
                               {attention + "kv_b_proj", "colwise"},
                               {shared + "gate_proj", "colwise"},
                               {shared + "up_proj", "colwise"},
                               {shared + "down_proj", "rowwise"}});
  plans.sp = merged(plans.sp, {{attention + "q_a_proj", "sequence_parallel"},
                               {attention + "q_a_layernorm", "sequence_parallel"},
                               {attention + "kv_a_layernorm", "sequence_parallel"}});
  return plans;
}

}  // namespace shardproof
