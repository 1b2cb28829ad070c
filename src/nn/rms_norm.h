// Root mean square norm, as transformers' Llama computes it.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

// Input "hidden_states" [..., width], output "output" the same; parameter "weight" [width], which
// must be held whole. weight * (x / sqrt(mean(x^2) + eps)): float64 is computed in float64, every
// other type in float32, rounded to the input's type before it is multiplied by the weight.
class RmsNorm final : public Module, public StatesInitialValues {
 public:
  RmsNorm(int64_t width, double eps);

  const ParamPtr& weight() const { return weight_; }
  double eps() const { return eps_; }
  // Ones.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  ParamPtr weight_;
  double eps_;
};

}  // namespace shardproof
