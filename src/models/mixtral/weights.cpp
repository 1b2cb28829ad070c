#include "models/mixtral/weights.h"

#include "models/decoder/weights.h"

namespace shardproof {

WeightMap mixtral_weights() {
  using namespace weight;
  WeightMap map =
      expert_weights("model.layers.*.mlp.experts", "model.layers.*.block_sparse_moe.experts.*",
                     {.gate = "w1", .up = "w3", .down = "w2"});
  const std::string router = "model.layers.*.mlp.gate.weight";
  map.rules.push_back(
      {router, {tensor(router), tensor("model.layers.*.block_sparse_moe.gate.weight")}});
  return map;
}

}  // namespace shardproof
