// Parts of a local tensor, named by global positions. `held` says which part of the global tensor
// `local` is; the parts asked for may be any products of intervals within it. Nothing here
// communicates or is recorded by autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include "tensor/interval.h"

namespace shardproof {

// A local tensor and the region that it holds: shape local_shape(held).
struct HeldTensor {
  const at::Tensor& local;
  const Region& held;
};

enum class CopyMode { kReplace, kAdd };

// Writes (or adds) the part `region` of `from` into its place in `to`, without scratch memory.
// Throws ContractError where a tensor has not the shape of what it holds or a position is not held
// by both.
void copy_region(const HeldTensor& to, const HeldTensor& from, const Region& region,
                 CopyMode mode = CopyMode::kReplace);

// The part `wanted` of `local`, contiguous, in memory of its own: shape local_shape(wanted). Throws
// as copy_region().
at::Tensor take(const at::Tensor& local, const Region& held, const Region& wanted);

// Writes `part`, of local_shape(region), into the place of `region` in `local`. Throws as
// copy_region().
void put(const at::Tensor& local, const Region& held, const at::Tensor& part, const Region& region,
         CopyMode mode = CopyMode::kReplace);

}  // namespace shardproof
