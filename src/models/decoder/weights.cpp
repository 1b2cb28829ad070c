#include "models/decoder/weights.h"

namespace shardproof {

WeightMap expert_weights(const std::string& stacked, const std::string& single,
                         const ExpertNames& names) {
  using namespace weight;
  const auto each = [&](const std::string& name) {
    return stack(tensor(single + "." + name + ".weight"));
  };
  const std::string gate_up = stacked + ".gate_up_proj";
  const std::string down = stacked + ".down_proj";
  return {
      .rules = {{gate_up, {tensor(gate_up), concatenate(1, {each(names.gate), each(names.up)})}},
                {down, {tensor(down), each(names.down)}}},
      .ignored = {}};
}

WeightMap plain_expert_weights() {
  return expert_weights("model.layers.*.mlp.experts", "model.layers.*.mlp.experts.*",
                        {.gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
}

}  // namespace shardproof
