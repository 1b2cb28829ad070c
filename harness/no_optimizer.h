// The optimizer of steps that update nothing: no moments in memory.
#pragma once

#include "train/optimizer.h"

namespace shardproof {

class NoOptimizer final : public Optimizer {
 public:
  explicit NoOptimizer(std::vector<ParamPtr> params) : params_(std::move(params)) {}
  void step() override {}
  const std::vector<ParamPtr>& params() const override { return params_; }

 private:
  std::vector<ParamPtr> params_;
};

}  // namespace shardproof
