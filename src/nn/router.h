// The router of a mixture of experts: which k experts a token goes to, and with which weights.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

struct RouterOptions {
  enum class Scoring {
    kSoftmax,      // a softmax over all experts, of which the largest k
    kTopKSoftmax,  // the largest k logits, and a softmax over them
    // A sigmoid of each; the largest k of score + e_score_correction_bias within the best groups
    // (DeepSeek-V3, section 2.1.2 of its report).
    kSigmoid,
  };
  enum class Type {
    kLogits,  // weights are given in the type of the logits
    kWide,    // as computed: float32 (float64 for float64)
  };
  int64_t hidden = 0;
  int64_t experts = 0;
  int64_t top_k = 0;
  Scoring scoring = Scoring::kSoftmax;
  bool bias = false;
  bool normalize = false;    // the k weights are divided by their sum
  bool wide_logits = false;  // logits are computed in float32 (float64 for float64)
  Type weights = Type::kLogits;
  double scale = 1.0;  // of the weights
  // kSigmoid only: experts fall into `groups` of neighbours, of which those `top_groups` take part
  // whose two best are largest together.
  int64_t groups = 1;
  int64_t top_groups = 1;
};

// Input "hidden_states" [..., hidden]; outputs "top_k_index" int64 [..., k], "top_k_weights"
// [..., k] and "logits" [..., experts]. Parameters "weight" [experts, hidden], where asked for
// "bias" [experts], and for kSigmoid "e_score_correction_bias" [experts], which is frozen. Of equal
// scores the one of the lowest index goes first.
class TopKRouter final : public Module, public StatesInitialValues {
 public:
  explicit TopKRouter(RouterOptions options);

  // The weight normal, the biases zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  // Of scores for choice [..., experts].
  at::Tensor choose(const at::Tensor& scores) const;

  RouterOptions options_;
  ParamPtr weight_, bias_, correction_;
};

}  // namespace shardproof
