// Rotary position embedding: the tables of cosines and sines, and how they turn queries and keys.
#pragma once

#include "nn/module.h"

namespace shardproof {

enum class RopeType { kDefault, kLinear, kLlama3 };

struct RopeOptions {
  RopeType type = RopeType::kDefault;
  int64_t dim = 0;  // of a head; even
  double theta = 10000.0;
  double factor = 1.0;  // linear, llama3
  // llama3 only
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position_embeddings = 8192;
};

// [dim / 2] float32, operation by operation as transformers computes them (modeling_rope_utils.py
// of 5.24): the reference defines them in this type, so float64 runs widen these values.
at::Tensor inverse_frequencies(const RopeOptions& options);

// Inputs "hidden_states" (its dtype and device only) and "position_ids" int64 [batch or 1, length];
// outputs "cos" and "sin" [batch or 1, length, dim] of that dtype: computed in float64 for float64,
// else in float32.
class RotaryEmbedding final : public Module {
 public:
  explicit RotaryEmbedding(RopeOptions options);

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  at::Tensor inverse_frequencies_;
};

// x [batch, heads, length, dim] turned by the tables [batch or 1, length, dim]; halves of a head
// are paired (not neighbours).
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace shardproof
