#include "train/trainer.h"

#include <ATen/ops/zeros.h>

#include "base/check.h"
#include "train/grad_norm.h"

namespace shardproof {
namespace {

// Over the data ranks, in float64: exact for counts of tokens up to 2^53.
double summed(double value, Communicator& data, const char* what, const char* phase) {
  at::Tensor sum = at::zeros({1}, at::kDouble);
  sum[0] = value;
  data.all_reduce(sum, sum, ReduceOp::kSum, {"", what, phase}).wait();
  return sum.item<double>();
}

}  // namespace

StepResult train_step(Module& model, Optimizer& optimizer, const Batch& batch, const LossSum& loss,
                      Communicator& data, Communicator& world, const StepOptions& options) {
  for (const ParamPtr& parameter : optimizer.params()) parameter->grad.reset();

  StepResult result;
  result.valid_tokens = static_cast<int64_t>(
      summed(static_cast<double>(count_valid(batch)), data, "valid_tokens", "forward"));
  SP_VALIDATE(
      result.valid_tokens > 0,
      "no label of the batch counts on any of the {} data ranks: the mean loss is not defined",
      data.size());

  const at::Tensor logits = model.call({batch.input_ids}).at("logits");
  // Each rank divides its own sum by the count of all: gradients are then summed, not averaged.
  const at::Tensor sum = loss(logits, shift_labels(batch.labels));
  const at::Tensor mean = sum / static_cast<double>(result.valid_tokens);
  result.loss = summed(mean.item<double>(), data, "loss", "forward");
  mean.backward();
  if (options.after_backward) options.after_backward();

  result.grad_norm = grad_norm(optimizer.params(), world);
  if (options.max_norm > 0) scale_to_norm_(optimizer.params(), result.grad_norm, options.max_norm);
  optimizer.step();
  return result;
}

}  // namespace shardproof
