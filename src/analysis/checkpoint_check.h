// Whether the files of a checkpoint hold what a model declares: names, shapes, types, by their
// headers alone.
#pragma once

#include "checkpoint/weight_map.h"
#include "io/checkpoint_index.h"
#include "nn/module.h"
#include "parallel/finding.h"

namespace shardproof {

// "checkpoint": an error for every parameter that the files lack or have in another shape or type,
// and for every tensor that no parameter takes, by the rules of load_parameters()
// (checkpoint/load.h) with the same map; a note where the files hold several types, MXFP4 aside.
Findings check_against(const CheckpointFiles& files, Module& model, const WeightMap& map = {});

}  // namespace shardproof
