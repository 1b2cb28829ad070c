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

}  // namespace

at::Tensor positions_from(const at::Tensor& attention_mask, int64_t batch, int64_t length) {
  check(attention_mask, batch, length);
  const at::Tensor positions = attention_mask.ne(0).cumsum(1) - 1;
  return positions.clamp_min(0).narrow(1, attention_mask.size(1) - length, length);
}

at::Tensor causal_mask(const at::Tensor& attention_mask, int64_t batch, int64_t length) {
  check(attention_mask, batch, length);
  const int64_t total = attention_mask.size(1);
  const at::Tensor keys = at::arange(total, at::kLong);
  const at::Tensor queries = keys.narrow(0, total - length, length).unsqueeze(1);
  const at::Tensor tokens = attention_mask.ne(0).unsqueeze(1);  // [batch, 1, total]
  return keys.le(queries).logical_and(tokens).logical_or(keys.eq(queries)).unsqueeze(1);
}

}  // namespace shardproof
