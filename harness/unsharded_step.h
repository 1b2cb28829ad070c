// One forward and backward of a model on one rank, on a batch that is given.
#pragma once

#include "harness/training_run.h"

namespace shardproof {

struct UnshardedStep {
  at::Tensor logits;
  double loss = 0;
  double grad_norm = 0;
  // By canonical name, in the order in which backward reached them.
  std::vector<std::pair<std::string, at::Tensor>> gradients;
};

UnshardedStep run_unsharded_step(const CommPtr& self, const ModelSource& model,
                                 at::ScalarType dtype, const Batch& batch);

}  // namespace shardproof
