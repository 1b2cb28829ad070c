// Where GPT-OSS checkpoints keep the experts.
#pragma once

#include "checkpoint/weight_map.h"

namespace shardproof {

// MXFP4 blocks and scales, as the checkpoints are shipped (rows are output features: transposed),
// or the stacked tensors under the parameters' own names.
WeightMap gpt_oss_weights();

}  // namespace shardproof
