// Where Mixtral checkpoints keep the experts.
#pragma once

#include "checkpoint/weight_map.h"

namespace shardproof {

// One tensor an expert (w1 = gate, w3 = up, w2 = down, below block_sparse_moe), as the checkpoints
// are shipped, or the stacked tensors under the parameters' own names.
WeightMap mixtral_weights();

}  // namespace shardproof
