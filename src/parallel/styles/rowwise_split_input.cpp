#include "parallel/styles/styles.h"

namespace shardproof {

// As rowwise, but the input comes whole: each rank takes its part. Backward: one all-gather of the
// input's gradient.
Style rowwise_split_input() {
  using enum Spot;
  Style style = rowwise();
  style.name = "rowwise_split_input";
  style.inputs = {{"input", kWhole, kFeature, kFeature, kWhole}};
  style.aliases = {"rowwise_rep"};
  return style;
}

}  // namespace shardproof
