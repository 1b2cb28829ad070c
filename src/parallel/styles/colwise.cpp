#include "parallel/styles/styles.h"

namespace shardproof {

// Linear cut by output features: a whole input, a sharded output.
// Forward: nothing moves (from a stream cut by tokens: an all-gather). Backward: one all-reduce of
// the input's gradient (a reduce-scatter), shared by siblings that read the same input.
Style colwise() {
  using enum Spot;
  return {
      .name = "colwise",
      .fits = {"Linear"},
      .inputs = {{"input", kStream, kWhole, kAddend, kStream}},
      .outputs = {{"output", kFeature, kFeature, kFeature, kFeature}},
      .parameters = {{"weight", kRows, kRows, kRows, kRows}, {"bias", kRows, kRows, kRows, kRows}},
      .bare = EdgeStyle{"", kRows, kRows, kRows, kRows}};
}

}  // namespace shardproof
