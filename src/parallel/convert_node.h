// A conversion between two placements with its gradient's conversion on the way back.
#pragma once

#include "parallel/resolve.h"
#include "tensor/conversion.h"

namespace shardproof {

// Which way a value crosses the boundary of a module.
enum class Crossing {
  kIn,   // forward outside -> inside, backward grad_inside -> grad_outside
  kOut,  // forward inside -> outside, backward grad_outside -> grad_inside
};

// Collective over the axis wherever one of the two conversions communicates, in forward and in
// backward; every rank of the axis must call it, and run the same backward. `site.phase` is set
// here. A gradient that never arrives counts as zeros, so that no rank waits for one that skipped.
at::Tensor convert_with_grad(const at::Tensor& value, const Edge& edge, Crossing crossing,
                             const AxisView& axis, Site site);

}  // namespace shardproof
