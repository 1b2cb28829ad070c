#include "models/deepseek_v3/weights.h"

#include "models/decoder/weights.h"

namespace shardproof {

WeightMap deepseek_v3_weights() {
  return expert_weights("model.layers.*.mlp.experts", "model.layers.*.mlp.experts.*",
                        {.gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
}

}  // namespace shardproof
