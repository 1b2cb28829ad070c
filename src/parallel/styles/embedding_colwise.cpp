#include "parallel/styles/styles.h"

namespace shardproof {

// Embedding cut by features: each rank looks up its part of every row.
// Forward: one all-gather of the output (to a stream cut by tokens: an all-to-all). Backward: each
// rank takes its features of the gradient, which is whole on every rank (an all-to-all).
Style embedding_colwise() {
  using enum Spot;
  return {.name = "embedding_colwise",
          .fits = {"Embedding"},
          .outputs = {{"output", kStream, kFeature, kFeature, kStream}},
          .parameters = {{"weight", kColumns, kColumns, kColumns, kColumns}}};
}

}  // namespace shardproof
