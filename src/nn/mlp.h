// The gated MLP: down(act(gate(x)) * up(x)), with gate and up apart or packed into one projection.
#pragma once

#include "nn/linear.h"

namespace shardproof {

enum class Activation { kSilu, kGeluTanh };  // gelu in its tanh approximation

at::Tensor activate(Activation activation, const at::Tensor& x);

struct GatedMlpOptions {
  int64_t hidden = 0;
  int64_t width = 0;
  bool bias = false;  // of all projections
  Activation activation = Activation::kSilu;
};

// Input "hidden_states" [..., hidden], output "output" the same: the part that the held columns of
// down_proj give. Children gate_proj, up_proj [width, hidden], down_proj [hidden, width].
class GatedMlp final : public Module {
 public:
  explicit GatedMlp(GatedMlpOptions options);
  GatedMlp(int64_t hidden, int64_t width, bool bias)
      : GatedMlp(GatedMlpOptions{.hidden = hidden, .width = width, .bias = bias}) {}

  std::vector<Link> links() const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  Activation activation_;
  std::shared_ptr<Linear> gate_, up_, down_;
};

// The same of children gate_up_proj [2 * width, hidden], the rows of gate before those of up, and
// down_proj. Gate and up are cut alike: whatever part of the two arrives, its first half is gate.
class PackedGatedMlp final : public Module {
 public:
  explicit PackedGatedMlp(GatedMlpOptions options);

  std::vector<Link> links() const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  Activation activation_;
  std::shared_ptr<Linear> gate_up_, down_;
};

}  // namespace shardproof
