#include "models/phi3/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans phi3_plans() {
  ModelPlans plans = decoder_plans();
  plans.tp = {
      {"model.embed_tokens", "embedding_rowwise"},
      {"model.layers.*.self_attn.qkv_proj", "packed_colwise"},
      {"model.layers.*.self_attn.o_proj", "rowwise"},
      {"model.layers.*.mlp.gate_up_proj", "packed_colwise"},
      {"model.layers.*.mlp.down_proj", "rowwise"},
      {"lm_head", "colwise_gather_output"},
  };
  return plans;
}

}  // namespace shardproof
