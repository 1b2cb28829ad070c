// Where checkpoints keep experts that a decoder holds stacked.
#pragma once

#include "checkpoint/weight_map.h"

namespace shardproof {

// Names of the tensors of one expert, in the order that the stacked parameters need.
struct ExpertNames {
  std::string gate, up, down;
};

// gate_up_proj [experts, 2 * width, hidden] and down_proj [experts, hidden, width] below `stacked`
// (a pattern, "model.layers.*.mlp.experts"): under their own names, or one tensor an expert below
// `single`, which has one more `*`.
WeightMap expert_weights(const std::string& stacked, const std::string& single,
                         const ExpertNames& names);

// The same for the names that most families have: one tensor an expert, gate_proj, up_proj and
// down_proj below model.layers.*.mlp.experts.*.
WeightMap plain_expert_weights();

}  // namespace shardproof
