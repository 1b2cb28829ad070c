// Whether the files of a checkpoint hold what a model declares: names, shapes, types, by their
// headers alone.
#pragma once

#include "io/checkpoint_index.h"
#include "nn/module.h"
#include "parallel/finding.h"

namespace shardproof {

// "checkpoint": an error for every parameter that the files lack or have in another shape, and for
// every tensor that no parameter takes; a note where the files hold several types.
Findings check_against(const CheckpointFiles& files, Module& model);

// The type that most bytes of the files have; nothing where it is not one of ATen.
std::optional<at::ScalarType> main_dtype(const CheckpointFiles& files);

}  // namespace shardproof
