// The experts of a mixture: gated MLPs, their weights stacked, on whatever experts and features are
// held.
#pragma once

#include "nn/expert_dispatcher.h"
#include "nn/initial_values.h"
#include "nn/mlp.h"
#include "nn/module.h"

namespace shardproof {

// GPT-OSS's gate (transformers 5.24, modeling_gpt_oss.py): with gate at most `limit` and up within
// +-limit, (up + 1) * gate * sigmoid(alpha * gate).
struct ClampedGate {
  double alpha = 1.702;
  double limit = 7.0;
};

struct ExpertsOptions {
  enum class Packing {
    kConcatenated,  // all of gate, then all of up
    kInterleaved,   // gate and up of a feature side by side
  };
  enum class Order {
    kOutIn,  // gate_up_proj [count, 2 * width, hidden], down_proj [count, hidden, width]
    kInOut,  // gate_up_proj [count, hidden, 2 * width], down_proj [count, width, hidden]
  };
  int64_t count = 0;
  int64_t hidden = 0;
  int64_t width = 0;
  Packing packing = Packing::kConcatenated;
  Order order = Order::kOutIn;
  bool bias = false;  // gate_up_proj_bias [count, 2 * width], down_proj_bias [count, hidden]
  Activation activation = Activation::kSilu;
  std::optional<ClampedGate> clamped_gate = {};  // instead of the activation
};

// Inputs "hidden_states" [..., hidden], "top_k_index" int64 [..., k], global ids, and
// "top_k_weights" [..., k]; output "output" [..., hidden], of hidden_states' type: the sum over a
// token's experts of weight times what the expert gives. Where not all experts, or not all of their
// width, are held (cut by experts; by width, gate and up of a feature together), it is the addend
// that the held part gives; a down_proj_bias that is to be added once must be zeros elsewhere.
//
// Routes to experts that are not held reach no expert. Every gradient is there, zero for experts
// without tokens and where there are no rows at all. Throws ContractError where the parameters hold
// different experts, gate and up different widths, or an id is none of an expert.
class Experts final : public Module, public DispatchesExperts, public StatesInitialValues {
 public:
  explicit Experts(ExpertsOptions options);

  void set_dispatcher(std::shared_ptr<ExpertDispatcher> dispatcher) override {
    dispatcher_ = std::move(dispatcher);
  }
  // Weights normal, biases zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  // RunExperts, on the experts that are held.
  at::Tensor run(const at::Tensor& rows, const at::Tensor& experts) const;
  at::Tensor combine_held(const Routes& routes) const;
  // For each global id its position among the held experts, -1 where it is not held.
  at::Tensor local_positions() const;
  at::Tensor gated(const at::Tensor& both) const;
  void check_held() const;

  ExpertsOptions options_;
  ParamPtr gate_up_, down_, gate_up_bias_, down_bias_;  // the biases nullptr where there are none
  std::shared_ptr<ExpertDispatcher> dispatcher_;
};

}  // namespace shardproof
