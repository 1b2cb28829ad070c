#include "nn/mlp.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>

#include "base/check.h"

namespace shardproof {

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
  }
  SP_ASSERT(false, "unknown activation {}", static_cast<int>(activation));
}

GatedMlp::GatedMlp(GatedMlpOptions options)
    : Module("GatedMlp", {.inputs = {{"hidden_states"}}}), activation_(options.activation) {
  const LinearOptions in = {.in = options.hidden, .out = options.width, .bias = options.bias};
  const LinearOptions out = {.in = options.width, .out = options.hidden, .bias = options.bias};
  gate_ = add_child("gate_proj", std::make_shared<Linear>(in));
  up_ = add_child("up_proj", std::make_shared<Linear>(in));
  down_ = add_child("down_proj", std::make_shared<Linear>(out));
}

std::vector<Link> GatedMlp::links() const {
  return {{{"", "hidden_states"}, {"gate_proj", "input"}},
          {{"", "hidden_states"}, {"up_proj", "input"}},
          {{"gate_proj", "output"}, {"down_proj", "input"}},
          {{"up_proj", "output"}, {"down_proj", "input"}},
          {{"down_proj", "output"}, {"", "output"}}};
}

NamedTensors GatedMlp::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const at::Tensor gate = only(gate_->call({}, {{"input", x}}));
  const at::Tensor up = only(up_->call({}, {{"input", x}}));
  return {{"output", only(down_->call({}, {{"input", activate(activation_, gate) * up}}))}};
}

PackedGatedMlp::PackedGatedMlp(GatedMlpOptions options)
    : Module("PackedGatedMlp", {.inputs = {{"hidden_states"}}}), activation_(options.activation) {
  const Section half = {.width = options.width};
  gate_up_ =
      add_child("gate_up_proj", std::make_shared<Linear>(LinearOptions{.in = options.hidden,
                                                                       .out = 2 * options.width,
                                                                       .bias = options.bias,
                                                                       .out_cut = {{half, half}}}));
  down_ = add_child("down_proj",
                    std::make_shared<Linear>(LinearOptions{
                        .in = options.width, .out = options.hidden, .bias = options.bias}));
}

std::vector<Link> PackedGatedMlp::links() const {
  return {{{"", "hidden_states"}, {"gate_up_proj", "input"}},
          {{"gate_up_proj", "output", 0}, {"down_proj", "input"}},
          {{"gate_up_proj", "output", 1}, {"down_proj", "input"}},
          {{"down_proj", "output"}, {"", "output"}}};
}

NamedTensors PackedGatedMlp::forward(const NamedTensors& inputs) {
  const at::Tensor both = only(gate_up_->call({}, {{"input", inputs.at("hidden_states")}}));
  const int64_t whole = gate_up_->weight()->shape()[0];
  const Intervals& held = gate_up_->weight()->held().at(0);
  const int64_t gates = total_size(intersect(held, {{0, whole / 2}}));
  SP_EXPECT(both.size(-1) == whole || both.size(-1) == total_size(held),
            "{}: its output has width {}, the rows held of its weight are {}: it must stay as cut "
            "or become whole",
            gate_up_->label(), both.size(-1), total_size(held));
  SP_EXPECT(both.size(-1) == whole || 2 * gates == total_size(held),
            "{}: {} rows of gate are held and {} of up: they must be cut alike, each on its own",
            gate_up_->label(), gates, total_size(held) - gates);
  const int64_t width = both.size(-1) / 2;
  const at::Tensor gate = both.narrow(-1, 0, width);
  const at::Tensor up = both.narrow(-1, width, width);
  return {{"output", only(down_->call({}, {{"input", activate(activation_, gate) * up}}))}};
}

}  // namespace shardproof
