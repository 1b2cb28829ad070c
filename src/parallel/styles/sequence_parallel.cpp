#include "parallel/styles/styles.h"

namespace shardproof {

// A module that works token by token (a norm, a Linear that is not cut), on the rank's own tokens.
// Forward: nothing moves with sequence parallel (from a whole stream each rank takes its tokens,
// and the output is gathered). Backward: the parameters' gradients are summed over the ranks, in
// one all-reduce a unit.
Style sequence_parallel() {
  using enum Spot;
  return {.name = "sequence_parallel",
          .inputs = {{"hidden_states", kStream, kTokens, kTokens, kStream},
                     {"input", kStream, kTokens, kTokens, kStream}},
          .outputs = {{"*", kStream, kTokens, kTokens, kStream}},
          .parameters = {{"*", kWhole, kWhole, kAddend, kWhole}}};
}

}  // namespace shardproof
