#include "parallel/styles/styles.h"

namespace shardproof {

// A module that is whole on every rank but sees only what the rank holds of its input (the norm of
// the local heads). Forward: nothing moves. Backward: the parameters' gradients are summed over the
// ranks, in one all-reduce a unit.
Style replicated_with_grad_allreduce() {
  using enum Spot;
  return {.name = "replicated_with_grad_allreduce",
          .parameters = {{"*", kWhole, kWhole, kAddend, kWhole}},
          .passes = true,
          .bare = EdgeStyle{"", kWhole, kWhole, kAddend, kWhole},
          .aliases = {"activation_seq_dim_2"}};
}

}  // namespace shardproof
