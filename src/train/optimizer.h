// Optimizers: they see `kept` and `grad` of each parameter only, so they are the same code for
// every layout. No communication.
#pragma once

#include <unordered_map>
#include <vector>

#include "nn/parameter.h"

namespace shardproof {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates `kept` of every parameter from its `grad`; one whose grad is undefined is left as it
  // is.
  virtual void step() = 0;
  virtual const std::vector<ParamPtr>& params() const = 0;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  // Throws InputError naming the field and its value.
  void validate() const;
};

// AdamW (Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2) with the
// rounding of torch.optim.AdamW, in the dtype of the parameter.
class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<ParamPtr> params, AdamWOptions options);

  void step() override;
  const std::vector<ParamPtr>& params() const override { return params_; }

  struct Moments {
    int64_t step = 0;
    at::Tensor exp_avg, exp_avg_sq;  // laid out like `kept`; undefined before the first gradient
  };
  // By any name of the parameter. Throws ContractError for an unknown one.
  const Moments& moments(const std::string& name) const;

 private:
  void update(Parameter& parameter, Moments& moments) const;

  std::vector<ParamPtr> params_;
  AdamWOptions options_;
  std::vector<Moments> moments_;                   // as params_
  std::unordered_map<std::string, size_t> index_;  // name -> place in params_
};

}  // namespace shardproof
