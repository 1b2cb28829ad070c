// Shard-on-read: fills each parameter's `kept` from a checkpoint, reading only the bytes of its
// region.
#pragma once

#include <functional>

#include "checkpoint/weight_map.h"
#include "io/checkpoint_index.h"
#include "nn/module.h"

namespace shardproof {

// Called after each parameter: bytes of parameters that have been filled, and those of all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// Not collective. What load_parameters() refuses, without reading a value; the model need not be
// placed.
void check_parameters(Module& model, const CheckpointFiles& files, const WeightMap& map = {});

// Not collective. Fills `kept` of each parameter, converted to its dtype, from the tensors that the
// map names for it; a tied parameter may be in the file under any of its names, or several. Needs
// at most kLoadScratchBytes (read_piece.h) beside the model, whatever the tensors' sizes.
//
// Throws InputError, naming file, tensor, shapes and dtypes, before a value is read: where a tensor
// is missing (of a form that is there in part: what is missing of it), has not the shape that the
// model needs or is stored in a dtype that the form does not have, and for tensors that no
// parameter takes.
void load_parameters(Module& model, const CheckpointFiles& files, const WeightMap& map = {},
                     const LoadProgress& progress = {});

}  // namespace shardproof
