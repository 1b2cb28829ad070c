// Dims that are counted from the end, as styles say "the last one" before they know how many there
// are.
#pragma once

#include "tensor/placement.h"

namespace shardproof {

// With dim -1 as the last of `dims`, and so on.
inline Placement counted_from_the_front(Placement placement, int64_t dims) {
  if (placement.is_shard() && placement.dim < 0) placement.dim += dims;
  return placement;
}

}  // namespace shardproof
