#include "parallel/styles/styles.h"

namespace shardproof {

// The down projection of multi-head latent attention: whole on every rank. Its "compressed" part
// goes to a colwise module, which sums its gradient; its "rope" part goes to the local heads
// directly, so that its gradient comes back as addends.
// Forward: nothing moves (from a stream cut by tokens: an all-gather of the rope part). Backward:
// one all-reduce of the rope part's gradient (a reduce-scatter; and the parameters' gradients are
// summed, each rank having seen its tokens).
Style mla_kv_a_proj() {
  using enum Spot;
  return {.name = "mla_kv_a_proj",
          .fits = {"SplitLinear"},
          .inputs = {{"input", kStream, kStream, kStream, kStream}},
          .outputs = {{"compressed", kStream, kStream, kStream, kStream},
                      {"rope", kWhole, kStream, kStream, kAddend}},
          .parameters = {{"*", kWhole, kWhole, kShareOfStream, kWhole}}};
}

}  // namespace shardproof
