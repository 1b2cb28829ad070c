// Rounding twins: the unsharded run with its sums taken in another order, as a layout would. What
// they differ by is what rounding alone does.
#pragma once

#include "base/rng.h"
#include "harness/blocked_linear.h"
#include "harness/training_run.h"

namespace shardproof {

// [0, width) cut into `count` blocks of nearly equal size (one for each element where there are
// fewer), in an order that `draw` gives from this index on.
Blocks drawn_blocks(int64_t width, int64_t count, const CounterRng& draw, uint64_t index);

// The twin of this number: rows of the batch permuted; each Linear computed in 2 to 4 blocks,
// summed in a drawn order. What is drawn depends on (seed, twin, module) alone. Only for runs on
// one rank, whose modules hold their parameters whole.
RunSeams twin_seams(uint64_t seed, int64_t twin);

// What a twin shows, with the rows of an output where the unsharded run has them.
Value in_order(Value value, const DataSpec& data, int64_t twin);

}  // namespace shardproof
