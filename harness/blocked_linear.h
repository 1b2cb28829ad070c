// Linear with its contractions cut into blocks, as a layout would cut them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tensor/interval.h"

namespace shardproof {

// The blocks that a sum is cut into, in the order in which they are added; together they are
// [0, width).
using Blocks = std::vector<Interval>;

struct LinearBlocks {
  Blocks in;    // of the forward sum: output = sum of input[.., b] @ weight[:, b]^T
  Blocks out;   // of the input's gradient: sum of grad[.., b] @ weight[b, :]
  Blocks rows;  // of the gradients of weight and bias: sum of grad[b]^T @ input[b]; input's rows,
                // its dims but the last made one
};

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out], differentiable. Each
// block's part is rounded to the type of the tensors before it is added.
at::Tensor blocked_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const LinearBlocks& blocks);

}  // namespace shardproof
