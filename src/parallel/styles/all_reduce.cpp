#include "parallel/styles/styles.h"

namespace shardproof {

// A module whose outputs are addends of the whole, one on each rank.
// Forward: one all-reduce of every output (to a stream cut by tokens: a reduce-scatter). Backward:
// nothing moves (an all-gather).
Style all_reduce_style() {
  using enum Spot;
  return {
      .name = "all_reduce", .outputs = {{"*", kStream, kAddend, kWhole, kStream}}, .passes = true};
}

}  // namespace shardproof
