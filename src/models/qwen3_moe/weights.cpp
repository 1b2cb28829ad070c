#include "models/qwen3_moe/weights.h"

#include "models/decoder/weights.h"

namespace shardproof {

WeightMap qwen3_moe_weights() {
  return expert_weights("model.layers.*.mlp.experts", "model.layers.*.mlp.experts.*",
                        {.gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
}

}  // namespace shardproof
