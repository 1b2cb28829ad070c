// The boxes of tensors in files that a region of a parameter is made of, and where they land: pure
// arithmetic.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "checkpoint/bound_weight.h"
#include "tensor/interval.h"

namespace shardproof {

// A box of the values of one tensor (or MXFP4 pair), and its place in the local tensor of the
// region: the box's position [i, j, ...] is at start + i * axes[0].step along axes[0].dim + ...
struct Piece {
  struct Axis {
    int64_t dim = 0;  // of the local tensor
    int64_t step = 1;
  };
  const BoundWeight* source = nullptr;  // of kind kTensor or kMxfp4
  std::vector<int64_t> begin, size;     // the box
  std::vector<int64_t> start;           // a local position, one a dim
  std::vector<Axis> axes;               // one a dim of the box
};

// All of them: together they fill the local tensor of `region`, of which `weight` is the whole,
// once. No pieces where the region is empty. `weight` must outlive them.
std::vector<Piece> pieces_of(const BoundWeight& weight, const Region& region);

// The view of `local` (any strides) that the box fills: of shape `size`.
at::Tensor place_of(const Piece& piece, const at::Tensor& local);

}  // namespace shardproof
