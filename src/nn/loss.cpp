#include "nn/loss.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace shardproof {

at::Tensor shift_labels(const at::Tensor& labels) {
  SP_EXPECT(labels.dim() == 2 && labels.size(1) > 0, "labels must be [batch, length], not {}",
            fmt::join(labels.sizes(), "x"));
  const at::Tensor last = at::full({labels.size(0), 1}, kIgnoredLabel, labels.options());
  return at::cat({labels.narrow(1, 1, labels.size(1) - 1), last}, 1);
}

int64_t count_valid(const at::Tensor& labels) {
  return labels.ne(kIgnoredLabel).sum().item<int64_t>();
}

void LossOptions::validate() const {
  SP_VALIDATE(label_smoothing >= 0 && label_smoothing <= 1,
              "label_smoothing is {}: it must be in [0, 1]", label_smoothing);
}

void check_labels(const at::Tensor& logits, const at::Tensor& labels, int64_t vocab) {
  SP_EXPECT(logits.dim() == 3 && labels.dim() == 2 && logits.size(0) == labels.size(0) &&
                logits.size(1) == labels.size(1),
            "logits must be [batch, length, vocab] and labels [batch, length], not {} and {}",
            fmt::join(logits.sizes(), "x"), fmt::join(labels.sizes(), "x"));
  const at::Tensor outside =
      labels.ne(kIgnoredLabel).logical_and(labels.lt(0).logical_or(labels.ge(vocab)));
  SP_VALIDATE(!outside.any().item<bool>(),
              "the label {} is outside the vocabulary of {} tokens (ignored ones are {})",
              labels.masked_select(outside)[0].item<int64_t>(), vocab, kIgnoredLabel);
}

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const LossOptions& options) {
  options.validate();
  const int64_t vocab = logits.size(-1);
  check_labels(logits, labels, vocab);
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor log_probabilities = at::log_softmax(logits.reshape({-1, vocab}).to(type), -1);
  const at::Tensor flat = labels.reshape({-1});
  const at::Tensor right =
      at::nll_loss(log_probabilities, flat, /*weight=*/{}, at::Reduction::Sum, kIgnoredLabel);
  if (options.label_smoothing == 0) return right;
  const at::Tensor valid = flat.ne(kIgnoredLabel).unsqueeze(1);
  const at::Tensor all = -log_probabilities.masked_fill(valid.logical_not(), 0).sum();
  const double share = options.label_smoothing;
  return right * (1 - share) + all * (share / static_cast<double>(vocab));
}

LossSum whole_logits_loss(LossOptions options) {
  options.validate();
  return [options](const at::Tensor& logits, const at::Tensor& labels) {
    return cross_entropy_sum(logits, labels, options);
  };
}

}  // namespace shardproof
