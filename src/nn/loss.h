// The loss of a causal language model, as a sum: who divides by which count is the trainer's
// business, since the valid tokens of one rank are not those of the batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace shardproof {

// The label that marks a token which does not count.
inline constexpr int64_t kIgnoredLabel = -100;

// labels int64 [batch, length] moved left by one, so that position i holds the token to predict
// there; the last position is ignored.
at::Tensor shift_labels(const at::Tensor& labels);

int64_t count_valid(const at::Tensor& labels);

struct LossOptions {
  // As torch.nn.functional.cross_entropy has it: of each token's loss, this share is the mean over
  // the whole vocabulary of -log softmax(logits). In [0, 1].
  double label_smoothing = 0;
  void validate() const;
};

// Sum over valid tokens of the loss of a token, -log softmax(logits)[label] where nothing is
// smoothed; a scalar, in float64 for float64 logits, else in float32. logits [batch, length,
// vocab], labels int64 [batch, length], already shifted. Without a valid token: zero, with a graph.
// Throws InputError for a label outside the vocabulary.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels,
                             const LossOptions& options = {});

// What a training step calls with the model's logits and shifted labels; see parallel/loss.h for
// the one that knows how a plan leaves the logits.
using LossSum = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels)>;
LossSum whole_logits_loss(LossOptions options = {});  // cross_entropy_sum

// Shared by those who compute the loss otherwise. Throws as cross_entropy_sum, for logits of
// `vocab` features in all, of which `logits` may be a part.
void check_labels(const at::Tensor& logits, const at::Tensor& labels, int64_t vocab);

}  // namespace shardproof
