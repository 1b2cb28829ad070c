#include "parallel/styles/styles.h"

namespace shardproof {

// Nothing is cut and nothing moves: every rank computes the whole module on whole values.
Style replicate_style() {
  using enum Spot;
  return {.name = "replicate", .bare = EdgeStyle{"", kWhole, kWhole, kWhole, kWhole}};
}

}  // namespace shardproof
