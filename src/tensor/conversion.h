// Conversions of one value between two placements on one axis: first planned (pure), then run.
// The plan is what `analysis` adds up and what the executor runs, so they cannot drift apart.
//
//   R -> R, same -> same  none            P -> R  all_reduce          S -> R  all_gather
//   R -> S, A             slice (local)   P -> S  reduce_scatter      S -> S' exchange (all-to-all)
//   R -> P                mask (local): whole on coordinate 0, zeros elsewhere
//   S -> P                embed (local): zeros around the shard
//   A -> S, same cut      block_sum: all-reduce over the blocks that hold copies
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.h"
#include "tensor/placement.h"

namespace shardproof {

enum class Operation {
  kNone,
  kSlice,
  kMask,
  kEmbed,
  kAllReduce,
  kBlockSum,
  kAllGather,
  kReduceScatter,
  kExchange,
};
const char* to_string(Operation operation);
// True where data moves between ranks.
bool communicates(Operation operation);

// Throws ContractError for a pair that has no conversion (to Addends from anything but R).
Operation plan_conversion(const Placement& from, const Placement& to, int64_t axis_size);

// One axis as one rank sees it.
struct AxisView {
  CommPtr comm;   // the ranks along the axis
  CommPtr block;  // the block that holds copies, for block_sum
  int64_t size = 1;
  int64_t coordinate = 0;
};

// Runs the conversion of this rank's `local` part. Collective over the axis where it communicates;
// the result is a new tensor, or `local` itself for kNone. No autograd. The global width of a
// sharded dim is the width of its cut (required for a dim that is given sharded). Dim -1 is the
// last one.
at::Tensor convert(const at::Tensor& local, const Placement& from, const Placement& to,
                   const AxisView& axis, const Site& site);

}  // namespace shardproof
