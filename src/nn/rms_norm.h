// Root mean square norm, as transformers computes it.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

struct RmsNormOptions {
  enum class Scale {
    kWeight,         // weight * round(normed), as Llama
    kWeightWide,     // round(weight * normed), as GPT-OSS
    kOnePlusWeight,  // round(normed * (1 + weight)), as Gemma 3
  };
  int64_t width = 0;
  double eps = 1e-6;
  Scale scale = Scale::kWeight;
  // The last dim is any number of runs of `width`, each normed on its own: the heads of attention.
  bool in_runs = false;
};

// Input "hidden_states" [..., width] (or, in runs, [..., n * width], n = 0 too), output "output"
// the same; parameter "weight" [width], which must be held whole. normed = x / sqrt(mean(x^2) +
// eps), times the scale: float64 is computed in float64, every other type in float32 and rounded to
// the input's type where the scale says.
class RmsNorm final : public Module, public StatesInitialValues {
 public:
  explicit RmsNorm(RmsNormOptions options);
  RmsNorm(int64_t width, double eps) : RmsNorm(RmsNormOptions{.width = width, .eps = eps}) {}

  const ParamPtr& weight() const { return weight_; }
  double eps() const { return options_.eps; }
  // What makes the scale 1: ones, or zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  at::Tensor normed(const at::Tensor& input) const;

  RmsNormOptions options_;
  ParamPtr weight_;
};

}  // namespace shardproof
