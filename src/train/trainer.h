// One training step, the same code for one rank and for many.
#pragma once

#include "comm/communicator.h"
#include "nn/loss.h"
#include "nn/module.h"
#include "train/batch.h"
#include "train/optimizer.h"

namespace shardproof {

struct StepOptions {
  double max_norm = 0;  // 0 = no clipping
  // Called between backward and the optimizer, when every `grad` is final (before clipping).
  std::function<void()> after_backward = {};
};

struct StepResult {
  double loss = 0;           // mean over all valid tokens of all data ranks, the same on every rank
  double grad_norm = 0;      // before clipping, the same on every rank
  int64_t valid_tokens = 0;  // of all data ranks
};

// Forward, loss, backward, clip, optimizer step on this rank's part of the batch.
// `data`: the ranks with different data (dp_replicate x fsdp): valid tokens are counted and the
// loss is summed over it, tp ranks not counted. `world`: all ranks that hold parts of the
// parameters, for the norm. `loss`: the sum over this rank's tokens, on the logits as the plan
// leaves them (parallel/loss.h).
StepResult train_step(Module& model, Optimizer& optimizer, const Batch& batch, const LossSum& loss,
                      Communicator& data, Communicator& world, const StepOptions& options = {});

}  // namespace shardproof
