// Where DeepSeek-V3 checkpoints keep the experts.
#pragma once

#include "checkpoint/weight_map.h"

namespace shardproof {

// One tensor an expert, as the checkpoints are shipped (converted from FP8), or the stacked tensors
// under the parameters' own names.
WeightMap deepseek_v3_weights();

}  // namespace shardproof
