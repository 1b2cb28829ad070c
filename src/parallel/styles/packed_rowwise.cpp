#include "parallel/styles/styles.h"

namespace shardproof {

// rowwise of a weight that packs several along its input features: each section is cut on its own.
// Moves what rowwise moves.
Style packed_rowwise() {
  Style style = rowwise();
  style.name = "packed_rowwise";
  style.packed = true;
  style.aliases = {};
  return style;
}

}  // namespace shardproof
