#include "parallel/styles/styles.h"

namespace shardproof {

// An expert without parameters inside experts whose outputs are summed over the ranks: its input is
// whole on coordinate 0 and zero elsewhere, so that the sum has it once. Forward and backward:
// nothing moves.
Style moe_identity_expert() {
  using enum Spot;
  return {.name = "moe_identity_expert",
          .inputs = {{"*", kWhole, kAddend, kWhole, kAddend}},
          .outputs = {{"*", kAddend, kAddend, kWhole, kWhole}}};
}

}  // namespace shardproof
