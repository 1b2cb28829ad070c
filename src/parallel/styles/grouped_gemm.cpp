#include "parallel/styles/styles.h"

namespace shardproof {

// A stacked expert parameter [experts, ...] cut by whole experts over the expert-parallel ranks.
// Nothing moves; FSDP cuts what is left over "efsdp".
Style grouped_gemm() {
  using enum Spot;
  return {
      .name = "grouped_gemm", .bare = EdgeStyle{"", kFirst, kFirst, kFirst, kFirst}, .axis = "ep"};
}

}  // namespace shardproof
