#include "parallel/styles/styles.h"

namespace shardproof {

// Embedding cut by vocabulary: each rank looks up the rows it holds, zeros for others.
// Forward: one all-reduce of the output (to a stream cut by tokens: a reduce-scatter). Backward:
// nothing moves (an all-gather).
Style embedding_rowwise() {
  using enum Spot;
  return {.name = "embedding_rowwise",
          .fits = {"Embedding"},
          .outputs = {{"output", kStream, kAddend, kWhole, kStream}},
          .parameters = {{"weight", kRows, kRows, kRows, kRows}},
          .aliases = {"vocab"}};
}

}  // namespace shardproof
