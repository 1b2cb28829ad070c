// The local half of every reduction.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "comm/communicator.h"

namespace shardproof {

// out = parts[0] op parts[1] op ..., element by element in exactly this order. All are
// one-dimensional, contiguous, of one dtype and length; bfloat16 and float16 are accumulated in
// float32 and rounded once. `out` may be one of the parts, but must not overlap one otherwise.
void reduce_in_order(const at::Tensor& out, std::span<const at::Tensor> parts, ReduceOp op);

}  // namespace shardproof
