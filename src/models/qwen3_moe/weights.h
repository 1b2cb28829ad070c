// Where Qwen3-MoE checkpoints keep the experts.
#pragma once

#include "checkpoint/weight_map.h"

namespace shardproof {

// One tensor an expert, as the checkpoints are shipped, or the stacked tensors under the
// parameters' own names.
WeightMap qwen3_moe_weights();

}  // namespace shardproof
