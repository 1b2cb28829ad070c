#include "models/gpt_oss/weights.h"

namespace shardproof {

WeightMap gpt_oss_weights() {
  using namespace weight;
  WeightMap map;
  for (const std::string name :
       {"model.layers.*.mlp.experts.gate_up_proj", "model.layers.*.mlp.experts.down_proj"})
    map.rules.push_back({name, {transpose(mxfp4(name)), tensor(name)}});
  return map;
}

}  // namespace shardproof
