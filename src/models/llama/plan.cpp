#include "models/llama/plan.h"

namespace shardproof {

ModelPlans llama_plans() {
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
  };
}

}  // namespace shardproof
