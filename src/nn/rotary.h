// Rotary position embedding: the tables of cosines and sines, and how they turn queries and keys.
#pragma once

#include "nn/module.h"

namespace shardproof {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn };

struct RopeOptions {
  RopeType type = RopeType::kDefault;
  int64_t dim = 0;  // of a head, or of the part of it that is turned; even
  double theta = 10000.0;
  double factor = 1.0;  // linear, llama3, yarn
  // llama3 only
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // llama3, yarn
  double original_max_position_embeddings = 8192;
  // yarn only (Peng et al., YaRN, sections 3.2 and 3.4): frequencies that turn more than beta_fast
  // times over the original length are kept, those that turn less than beta_slow times divided by
  // `factor`, those between blended.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;           // the ends of the blend lie at whole positions of the table
  double attention_factor = 1.0;  // of cosines and sines
};

// What YaRN takes for a stretch of `factor` (section 3.4): 0.1 m ln(factor) + 1, at least 1.
double yarn_magnitude(double factor, double m = 1.0);

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
  double attention_factor_;
};

// x [batch, heads, length, head_dim] turned by the tables [batch or 1, length, dim]; halves are
// paired (not neighbours). Where dim is less than head_dim, only the first dim of a head are
// turned.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

// x [..., 2n], of which neighbours are pairs, with the first of all pairs before the second of all:
// what rotate() takes.
at::Tensor halves_from_neighbours(const at::Tensor& x);

}  // namespace shardproof
