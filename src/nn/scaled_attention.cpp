#include "nn/scaled_attention.h"

#include <ATen/ATen.h>

#include <limits>

#include "base/check.h"

namespace shardproof {
namespace {

at::Tensor with_sinks(const ScaledAttentionInputs& in, const at::Tensor& allowed) {
  at::Tensor key = in.key;
  at::Tensor value = in.value;
  if (key.size(1) != in.query.size(1)) {
    const int64_t group = in.query.size(1) / key.size(1);
    key = key.repeat_interleave(group, 1);
    value = value.repeat_interleave(group, 1);
  }
  const at::Tensor scores =
      (in.query.matmul(key.transpose(2, 3)) * in.scale)
          .masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
  const at::Tensor sinks =
      in.sinks.view({1, -1, 1, 1}).expand({scores.size(0), scores.size(1), scores.size(2), 1});
  const at::Tensor weights = at::softmax(at::cat({scores, sinks}, -1), -1);
  return weights.narrow(-1, 0, key.size(2)).matmul(value);
}

}  // namespace

at::Tensor scaled_attention(const ScaledAttentionInputs& in) {
  const int64_t length = in.query.size(2);
  const int64_t keys = in.key.size(2);
  std::optional<at::Tensor> allowed;
  if (in.mask.defined()) {
    SP_EXPECT(in.mask.dim() == 4 && in.mask.size(2) == length && in.mask.size(3) == keys,
              "the mask is {} for {} queries and {} keys", fmt::join(in.mask.sizes(), "x"), length,
              keys);
    allowed = in.mask;
  } else if (keys != length || in.sinks.defined()) {
    allowed = at::ones({length, keys}, in.query.options().dtype(at::kBool)).tril(keys - length);
  }
  if (in.sinks.defined()) return with_sinks(in, *allowed);
  return at::scaled_dot_product_attention(in.query, in.key, in.value, allowed, /*dropout_p=*/0.0,
                                          /*is_causal=*/!allowed, in.scale,
                                          /*enable_gqa=*/in.key.size(1) != in.query.size(1));
}

}  // namespace shardproof
