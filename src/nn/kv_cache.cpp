#include "nn/kv_cache.h"

#include <ATen/ops/empty.h>

#include "base/check.h"

namespace shardproof {

KvCache::KvCache(const Shape& shape, at::ScalarType dtype) {
  SP_EXPECT(shape.batch > 0 && shape.heads >= 0 && shape.capacity > 0 && shape.head_dim > 0,
            "a cache of batch {}, {} heads, {} tokens, head_dim {}", shape.batch, shape.heads,
            shape.capacity, shape.head_dim);
  keys_ = at::empty({shape.batch, shape.heads, shape.capacity, shape.head_dim}, dtype);
  const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  values_ = at::empty({shape.batch, shape.heads, shape.capacity, value_dim}, dtype);
}

void KvCache::set_heads(int64_t heads) {
  if (heads == keys_.size(1)) return;
  SP_EXPECT(length_ == 0, "a cache that holds {} tokens of {} heads cannot go on with {} heads",
            length_, keys_.size(1), heads);
  keys_ = at::empty({keys_.size(0), heads, keys_.size(2), keys_.size(3)}, keys_.options());
  values_ = at::empty({keys_.size(0), heads, keys_.size(2), values_.size(3)}, keys_.options());
}

KvCache::Held KvCache::append(const at::Tensor& key, const at::Tensor& value) {
  SP_EXPECT(key.dim() == 4 && value.dim() == 4 &&
                key.sizes().slice(0, 3) == value.sizes().slice(0, 3) &&
                value.size(3) == values_.size(3),
            "keys are {}, values {}", fmt::join(key.sizes(), "x"), fmt::join(value.sizes(), "x"));
  SP_EXPECT(
      key.size(0) == keys_.size(0) && key.size(1) == keys_.size(1) && key.size(3) == keys_.size(3),
      "keys of {} (batch, heads, tokens, head_dim) do not go into a cache of {}",
      fmt::join(key.sizes(), "x"), fmt::join(keys_.sizes(), "x"));
  SP_EXPECT(key.scalar_type() == keys_.scalar_type() && value.scalar_type() == keys_.scalar_type(),
            "keys of type {} do not go into a cache of {}", at::toString(key.scalar_type()),
            at::toString(keys_.scalar_type()));
  SP_EXPECT(!key.requires_grad() && !value.requires_grad(),
            "a cache is for generation: switch gradients off");
  const int64_t count = key.size(2);
  SP_EXPECT(length_ + count <= capacity(), "{} tokens more than {} pass the cache's capacity of {}",
            count, length_, capacity());
  keys_.narrow(2, length_, count).copy_(key);
  values_.narrow(2, length_, count).copy_(value);
  length_ += count;
  return {keys_.narrow(2, 0, length_), values_.narrow(2, 0, length_)};
}

}  // namespace shardproof
