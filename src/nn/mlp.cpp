#include "nn/mlp.h"

#include <ATen/ops/silu.h>

namespace shardproof {

GatedMlp::GatedMlp(int64_t hidden, int64_t width, bool bias)
    : Module("GatedMlp", {.inputs = {{"hidden_states"}}}) {
  gate_ =
      add_child("gate_proj",
                std::make_shared<Linear>(LinearOptions{.in = hidden, .out = width, .bias = bias}));
  up_ = add_child(
      "up_proj", std::make_shared<Linear>(LinearOptions{.in = hidden, .out = width, .bias = bias}));
  down_ =
      add_child("down_proj",
                std::make_shared<Linear>(LinearOptions{.in = width, .out = hidden, .bias = bias}));
}

NamedTensors GatedMlp::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const at::Tensor gate = only(gate_->call({}, {{"input", x}}));
  const at::Tensor up = only(up_->call({}, {{"input", x}}));
  return {{"output", only(down_->call({}, {{"input", at::silu(gate) * up}}))}};
}

}  // namespace shardproof
