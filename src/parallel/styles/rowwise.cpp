#include "parallel/styles/styles.h"

namespace shardproof {

// Linear cut by input features: a sharded input, addends of the output summed over the ranks.
// Forward: one all-reduce of the output (to a stream cut by tokens: a reduce-scatter). Backward:
// nothing moves (an all-gather). The bias, which has no input features to be cut by, is whole on
// coordinate 0 and zero elsewhere, so that the sum has it once; its gradient is whole on every
// rank.
Style rowwise() {
  using enum Spot;
  return {.name = "rowwise",
          .fits = {"Linear"},
          .inputs = {{"input", kFeature, kFeature, kFeature, kFeature}},
          .outputs = {{"output", kStream, kAddend, kWhole, kStream}},
          .parameters = {{"*", kColumns, kColumns, kColumns, kColumns}},
          .bare = EdgeStyle{"", kColumns, kColumns, kColumns, kColumns},
          .aliases = {"rowwise_allreduce"}};
}

}  // namespace shardproof
