#include "parallel/styles/styles.h"

namespace shardproof {

// Embedding cut by vocabulary: each rank looks up the rows it holds, zeros for others.
// Forward: one all-reduce of the output. Backward: nothing moves.
Style embedding_rowwise() {
  using enum Spot;
  return {.name = "embedding_rowwise",
          .fits = {"Embedding"},
          .inputs = {},
          .outputs = {{"output", kWhole, kAddend, kWhole, kWhole}},
          .parameters = {{"weight", kDim0, kDim0, kDim0, kDim0}}};
}

}  // namespace shardproof
