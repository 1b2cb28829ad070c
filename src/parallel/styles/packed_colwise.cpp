#include "parallel/styles/styles.h"

namespace shardproof {

// colwise of a weight that packs several (gate | up, q | k | v) along its output features: each
// section is cut on its own, so that every rank has its part of each. Moves what colwise moves.
Style packed_colwise() {
  Style style = colwise();
  style.name = "packed_colwise";
  style.packed = true;
  return style;
}

}  // namespace shardproof
