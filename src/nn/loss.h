// The loss of a causal language model, as a sum: who divides by which count is the trainer's
// business, since the valid tokens of one rank are not those of the batch.
#pragma once

#include <ATen/core/Tensor.h>

namespace shardproof {

// The label that marks a token which does not count.
inline constexpr int64_t kIgnoredLabel = -100;

// labels int64 [batch, length] moved left by one, so that position i holds the token to predict
// there; the last position is ignored.
at::Tensor shift_labels(const at::Tensor& labels);

int64_t count_valid(const at::Tensor& labels);

// Sum over valid tokens of -log softmax(logits)[label]; a scalar, in float64 for float64 logits,
// else in float32. logits [batch, length, vocab], labels int64 [batch, length], already shifted.
// Without a valid token: zero, with a graph. Throws InputError for a label outside the vocabulary.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace shardproof
