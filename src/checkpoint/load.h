// Shard-on-read: fills each parameter's `kept` from a checkpoint, reading only the bytes of its
// region.
#pragma once

#include "io/checkpoint_index.h"
#include "nn/module.h"

namespace shardproof {

// Not collective. What load_parameters() refuses, without reading a value; the model need not be
// placed.
void check_parameters(Module& model, const CheckpointFiles& files,
                      const std::vector<std::string>& ignored = {});

// Not collective. Reads, for each parameter, the boxes of kept_region from the tensor of its first
// name that the checkpoint has, converting to kept's dtype. Throws InputError naming file, tensor
// and both shapes where a parameter is missing or has another shape, and for tensors that no
// parameter takes (except names in `ignored`, patterns). Tied names may be in the file or not.
void load_parameters(Module& model, const CheckpointFiles& files,
                     const std::vector<std::string>& ignored = {});

}  // namespace shardproof
