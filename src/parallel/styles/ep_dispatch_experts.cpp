#include "parallel/styles/styles.h"

namespace shardproof {

// Whole experts on each rank of "ep", whose ranks share one batch (ep_implementation all_reduce):
// each rank runs its own experts on all tokens and gives an addend of the output. Moves what
// moe_tp_experts moves.
Style ep_dispatch_experts_all_reduce() {
  Style style = moe_tp_experts();
  style.name = "ep_dispatch_experts/all_reduce";
  style.axis = "ep";
  style.aliases = {};
  return style;
}

// Whole experts on each rank of "ep", each token sent to its experts and back (ep_implementation
// all_to_all). The ranks of tp, which share a batch, take their tokens of it.
// Forward: an all-to-all of counts, one of rows, one of results over ep; over tp an all-gather of
// the output (nothing, where the stream is cut by tokens). Backward: the two of rows and results in
// reverse; over tp an all-gather of the gradients of tokens and routing weights.
Style ep_dispatch_experts_all_to_all() {
  using enum Spot;
  return {.name = "ep_dispatch_experts/all_to_all",
          .fits = {"Experts"},
          .inputs = {{"hidden_states", kStream, kTokens, kTokens, kStream},
                     {"top_k_index", kStream, kTokens, kTokens, kStream},
                     {"top_k_weights", kStream, kTokens, kTokens, kStream}},
          .outputs = {{"output", kStream, kTokens, kTokens, kStream}},
          .dispatches = true,
          .aliases = {"ep_dispatch_experts"}};
}

}  // namespace shardproof
