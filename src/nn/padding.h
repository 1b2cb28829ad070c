// Positions and masks of batches whose sequences are padded. Pure functions; they name the current
// tokens as the last `length` columns of an attention mask [batch, total] (int64 or bool, nonzero =
// a token, 0 = padding), the columns before them being tokens that a cache holds.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace shardproof {

// int64 [batch, length]: how many tokens of its own sequence come before each; 0 for padding in
// front. Throws InputError where the mask has another batch or fewer columns than tokens.
at::Tensor positions_from(const at::Tensor& attention_mask, int64_t batch, int64_t length);

// bool [batch, 1, length, total], true where the query (a current token) may attend to the key: a
// token not after it and, with a window, fewer than `window` columns before it. Padding attends to
// itself alone, so that no row is empty. Throws as positions_from.
at::Tensor causal_mask(const at::Tensor& attention_mask, int64_t batch, int64_t length,
                       std::optional<int64_t> window = {});

// The same where nothing is padded: [1, 1, length, total], of the last `length` of `total` tokens.
at::Tensor window_mask(int64_t length, int64_t total, int64_t window, at::Device device);

}  // namespace shardproof
