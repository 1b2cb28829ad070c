// The norm of all gradients, whatever their layout, and clipping by it.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "nn/parameter.h"

namespace shardproof {

// The L2 norm over all elements of all gradients, each counted once, by the rank that owns it
// (Parameter::owned). One all-reduce of one float64 over `world`, all of whose ranks must call; the
// result is bit-equal on all of them. Parameters without a gradient count as zero.
double grad_norm(const std::vector<ParamPtr>& params, Communicator& world);

// Scales every gradient by min(1, max_norm / (norm + 1e-6)), as torch's clip_grad_norm_ does, and
// returns the norm before. Communicates as grad_norm.
double clip_grad_norm_(const std::vector<ParamPtr>& params, Communicator& world, double max_norm);

// The second half of it, for a norm that is known already.
void scale_to_norm_(const std::vector<ParamPtr>& params, double norm, double max_norm);

}  // namespace shardproof
