#include "nn/padding.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace shardproof {
namespace {

void check(const at::Tensor& mask, int64_t batch, int64_t length) {
  SP_VALIDATE(mask.dim() == 2 && mask.size(0) == batch && mask.size(1) >= length,
              "attention_mask is {}; for input_ids of {}x{} it must be {}x(at least {}): a column "
              "for every token held in a cache and every current one",
              fmt::join(mask.sizes(), "x"), batch, length, batch, length);
}

// bool [length, total] of the last `length` of `total` tokens.
at::Tensor visible(int64_t length, int64_t total, std::optional<int64_t> window,
                   at::Device device) {
  const at::Tensor keys = at::arange(total, at::TensorOptions(at::kLong).device(device));
  const at::Tensor queries = keys.narrow(0, total - length, length).unsqueeze(1);
  const at::Tensor causal = keys.le(queries);
  return window ? causal.logical_and(keys.gt(queries - *window)) : causal;
}

}  // namespace

at::Tensor positions_from(const at::Tensor& attention_mask, int64_t batch, int64_t length) {
  check(attention_mask, batch, length);
  const at::Tensor positions = attention_mask.ne(0).cumsum(1) - 1;
  return positions.clamp_min(0).narrow(1, attention_mask.size(1) - length, length);
}

at::Tensor causal_mask(const at::Tensor& attention_mask, int64_t batch, int64_t length,
                       std::optional<int64_t> window) {
  check(attention_mask, batch, length);
  const int64_t total = attention_mask.size(1);
  const at::Device device = attention_mask.device();
  const at::Tensor tokens = attention_mask.ne(0).unsqueeze(1);  // [batch, 1, total]
  const at::Tensor itself = visible(length, total, 1, device);
  return visible(length, total, window, device).logical_and(tokens).logical_or(itself).unsqueeze(1);
}

at::Tensor window_mask(int64_t length, int64_t total, int64_t window, at::Device device) {
  return visible(length, total, window, device).unsqueeze(0).unsqueeze(0);
}

}  // namespace shardproof
