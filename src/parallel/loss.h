// The loss on logits as a plan leaves them: whole, or cut by vocabulary (loss parallel), where no
// rank ever holds them whole.
#pragma once

#include "mesh/device_mesh.h"
#include "nn/loss.h"
#include "parallel/resolve.h"
#include "tensor/conversion.h"

namespace shardproof {

// As cross_entropy_sum (nn/loss.h), on logits [batch, length, part of the vocabulary] that lie as
// `placement` says, a shard of the last dim. labels are whole, and alike on all ranks of the axis.
// The result is whole and alike on all of them, its gradient lies as the logits. Collective over
// the axis, forward only: two all-reduces, of one and of two (smoothed: three) numbers a token.
// Parts may be uneven and empty. The log-sum-exp is taken against the largest logit of all ranks,
// as Megatron-LM's vocabulary-parallel cross entropy does (Shoeybi et al. 2019, section 3).
at::Tensor vocab_parallel_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                                            const Placement& placement, const AxisView& axis,
                                            const LossOptions& options = {});

// What parallelize left of the model's output "logits", and what is done with it. Collective over
// the mesh to make, where groups are not there yet.
class CausalLogits {
 public:
  // Throws InputError where the plan leaves the logits neither whole nor cut by vocabulary.
  CausalLogits(const ResolvedPlan& plan, const MeshPtr& mesh);

  // cross_entropy_sum of what the model gave. All ranks of tp must call.
  at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& labels,
                      const LossOptions& options = {}) const;
  // The whole of it, without a gradient: an all-gather over tp where it is cut.
  at::Tensor whole(const at::Tensor& logits) const;
  // The two for a training step, and for generation. They may outlive this object.
  LossSum loss(LossOptions options = {}) const;
  std::function<at::Tensor(const at::Tensor& logits)> gatherer() const;

 private:
  Placement placement_;
  AxisView axis_;
};

}  // namespace shardproof
