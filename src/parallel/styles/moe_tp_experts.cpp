#include "parallel/styles/styles.h"

namespace shardproof {

// Experts of which every rank holds a part, all of them seeing all tokens: each rank gives an
// addend of the output. Its parameters have rules of their own (packed_colwise, rowwise). Forward:
// one all-reduce of the output (to a stream cut by tokens: a reduce-scatter; and from it an
// all-gather of tokens and routes). Backward: one all-reduce each of the gradients of tokens and
// routing weights (a reduce-scatter).
Style moe_tp_experts() {
  using enum Spot;
  return {.name = "moe_tp_experts",
          .fits = {"Experts"},
          .inputs = {{"hidden_states", kStream, kWhole, kAddend, kStream},
                     {"top_k_index", kStream, kWhole, kWhole, kStream},
                     {"top_k_weights", kStream, kWhole, kAddend, kStream}},
          .outputs = {{"output", kStream, kAddend, kWhole, kStream}},
          .aliases = {"moe_experts_allreduce", "moe_experts"}};
}

}  // namespace shardproof
