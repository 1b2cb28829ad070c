#include "parallel/styles/styles.h"

namespace shardproof {

// Linear cut by output features: a whole input, a sharded output.
// Forward: nothing moves. Backward: one all-reduce of the input's gradient, shared by siblings that
// read the same input.
Style colwise() {
  using enum Spot;
  return {
      .name = "colwise",
      .fits = {"Linear"},
      .inputs = {{"input", kWhole, kWhole, kAddend, kWhole}},
      .outputs = {{"output", kFeature, kFeature, kFeature, kFeature}},
      .parameters = {{"weight", kDim0, kDim0, kDim0, kDim0}, {"bias", kDim0, kDim0, kDim0, kDim0}}};
}

}  // namespace shardproof
