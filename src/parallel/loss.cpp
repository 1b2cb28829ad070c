#include "parallel/loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "base/check.h"

namespace shardproof {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const Site kSite{"", "loss", "forward"};

// Where the global `ids` lie among the positions held, 0 where they are not; and which are held.
std::pair<at::Tensor, at::Tensor> local_positions(const at::Tensor& ids, const Intervals& held) {
  at::Tensor positions = at::zeros_like(ids);
  at::Tensor found = at::zeros(ids.sizes(), ids.options().dtype(at::kBool));
  int64_t offset = 0;
  for (const Interval& interval : held) {
    const at::Tensor inside = ids.ge(interval.begin).logical_and(ids.lt(interval.end));
    positions = at::where(inside, ids - interval.begin + offset, positions);
    found = found.logical_or(inside);
    offset += interval.size();
  }
  return {positions, found};
}

// Adds `value` [tokens] to the column `positions` of each row of `to` where `found`.
void add_at(const at::Tensor& to, const at::Tensor& positions, const at::Tensor& found,
            const at::Tensor& value) {
  if (to.size(1) == 0) return;
  to.scatter_add_(1, positions.unsqueeze(1),
                  value.masked_fill(found.logical_not(), 0).unsqueeze(1));
}

class VocabParallelLoss : public torch::autograd::Function<VocabParallelLoss> {
 public:
  // logits [tokens, held] of the type to compute in, labels [tokens].
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, const Intervals& held, int64_t vocab,
                            double smoothing, const CommPtr& comm) {
    const auto [positions, found] = local_positions(labels, held);
    const at::Tensor largest =
        logits.size(1) > 0 ? logits.amax(1)
                           : at::full({logits.size(0)}, -std::numeric_limits<double>::infinity(),
                                      logits.options());
    comm->all_reduce(largest, largest, ReduceOp::kMax, kSite).wait();

    const at::Tensor sums = at::zeros({smoothing > 0 ? 3 : 2, logits.size(0)}, logits.options());
    sums[0].copy_((logits - largest.unsqueeze(1)).exp().sum(1));
    if (logits.size(1) > 0) {
      const at::Tensor picked = logits.gather(1, positions.unsqueeze(1)).squeeze(1);
      sums[1].copy_(picked.masked_fill(found.logical_not(), 0));
    }
    if (smoothing > 0) sums[2].copy_(logits.sum(1));
    comm->all_reduce(sums, sums, ReduceOp::kSum, kSite).wait();

    const at::Tensor log_sum = sums[0].log() + largest;
    at::Tensor loss = log_sum - sums[1] * (1 - smoothing);
    if (smoothing > 0) loss = loss - sums[2] * (smoothing / static_cast<double>(vocab));
    const at::Tensor valid = labels.ne(kIgnoredLabel);
    context->save_for_backward({logits, log_sum, positions, found, valid});
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["vocab"] = vocab;
    return loss.masked_fill(valid.logical_not(), 0).sum();
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const auto vocab = static_cast<double>(context->saved_data["vocab"].toInt());
    const at::Tensor grad = (saved[0] - saved[1].unsqueeze(1)).exp_();
    if (smoothing > 0) grad.sub_(smoothing / vocab);
    add_at(grad, saved[2], saved[3], at::full_like(saved[1], smoothing - 1));
    grad.mul_(grads[0]).masked_fill_(saved[4].logical_not().unsqueeze(1), 0);
    return {grad, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor vocab_parallel_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                                            const Placement& placement, const AxisView& axis,
                                            const LossOptions& options) {
  options.validate();
  SP_EXPECT(placement.kind == Placement::Kind::kShard && placement.cut.width() > 0,
            "logits that lie {} are not cut by vocabulary", placement.to_string());
  const int64_t vocab = placement.cut.width();
  const Intervals held = cut_intervals(placement.cut, vocab, axis.size, axis.coordinate);
  check_labels(logits, labels, vocab);
  SP_EXPECT(
      logits.size(2) == total_size(held),
      "the logits have {} features, this rank's part of the vocabulary of {} has {}: were they "
      "gathered already?",
      logits.size(2), vocab, total_size(held));
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return VocabParallelLoss::apply(logits.reshape({labels.numel(), logits.size(2)}).to(type),
                                  labels.reshape({-1}), held, vocab, options.label_smoothing,
                                  axis.comm);
}

CausalLogits::CausalLogits(const ResolvedPlan& plan, const MeshPtr& mesh)
    : placement_(plan.output("", "logits")) {
  const bool by_vocabulary = placement_.kind == Placement::Kind::kShard && placement_.dim == -1;
  SP_VALIDATE(placement_.is_replicate() || by_vocabulary,
              "the plan leaves the logits neither whole nor cut by vocabulary ({}): give the head "
              "another style",
              placement_.to_string());
  axis_.size = mesh->size("tp");
  axis_.coordinate = mesh->coordinate("tp");
  if (axis_.size > 1) axis_.comm = mesh->group({"tp"});
}

at::Tensor CausalLogits::loss_sum(const at::Tensor& logits, const at::Tensor& labels,
                                  const LossOptions& options) const {
  if (placement_.is_replicate()) return cross_entropy_sum(logits, labels, options);
  return vocab_parallel_cross_entropy_sum(logits, labels, placement_, axis_, options);
}

at::Tensor CausalLogits::whole(const at::Tensor& logits) const {
  return convert(logits.detach(), placement_, replicate(), axis_, {"", "logits", "forward"});
}

std::function<at::Tensor(const at::Tensor&)> CausalLogits::gatherer() const {
  return [*this](const at::Tensor& logits) { return whole(logits); };
}

LossSum CausalLogits::loss(LossOptions options) const {
  options.validate();
  return [*this, options](const at::Tensor& logits, const at::Tensor& labels) {
    return loss_sum(logits, labels, options);
  };
}

}  // namespace shardproof
