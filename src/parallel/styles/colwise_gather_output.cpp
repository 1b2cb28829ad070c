#include "parallel/styles/styles.h"

namespace shardproof {

// As colwise, but the output is whole again. Forward: one all-gather of the output. Backward: each
// rank takes its part of the output's gradient (which is whole on every rank), then what colwise
// does.
Style colwise_gather_output() {
  using enum Spot;
  Style style = colwise();
  style.name = "colwise_gather_output";
  style.outputs = {{"output", kWhole, kFeature, kFeature, kWhole}};
  style.aliases = {"colwise_rep", "colwise_allgather"};
  return style;
}

}  // namespace shardproof
