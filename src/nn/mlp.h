// The gated MLP: down(silu(gate(x)) * up(x)).
#pragma once

#include "nn/linear.h"

namespace shardproof {

// Input "hidden_states" [..., hidden], output "output" the same: the part that the held columns of
// down_proj give. Children gate_proj, up_proj [width, hidden], down_proj [hidden, width].
class GatedMlp final : public Module {
 public:
  GatedMlp(int64_t hidden, int64_t width, bool bias);

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::shared_ptr<Linear> gate_, up_, down_;
};

}  // namespace shardproof
