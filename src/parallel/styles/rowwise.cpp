#include "parallel/styles/styles.h"

namespace shardproof {

// Linear cut by input features: a sharded input, addends of the output summed over the ranks.
// Forward: one all-reduce of the output. Backward: nothing moves. The bias is whole on coordinate 0
// and zero elsewhere, so that the sum has it once; its gradient is whole on every rank.
Style rowwise() {
  using enum Spot;
  return {.name = "rowwise",
          .fits = {"Linear"},
          .inputs = {{"input", kFeature, kFeature, kFeature, kFeature}},
          .outputs = {{"output", kWhole, kAddend, kWhole, kWhole}},
          .parameters = {{"weight", kDim1, kDim1, kDim1, kDim1},
                         {"bias", kWhole, kAddend, kWhole, kWhole}}};
}

}  // namespace shardproof
