#include "parallel/styles/styles.h"

namespace shardproof {

// A bare parameter (attention sinks) cut along its output features, used as the part that it is:
// nothing moves, forward or backward. On a module it does nothing: modules here always compute with
// local parameters.
Style local_params() {
  using enum Spot;
  return {.name = "local_params",
          .passes = true,
          .bare = EdgeStyle{"", kRows, kRows, kRows, kRows},
          .aliases = {"local_rowwise"}};
}

}  // namespace shardproof
