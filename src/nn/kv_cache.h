// The keys and values that attention has computed for the tokens so far.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace shardproof {

// Of one attention module on one rank: its local key/value heads only (there may be none), keys
// after rotation. Allocated once, [batch, heads, capacity, head_dim] each, and filled from the
// front. For use without gradients.
class KvCache {
 public:
  struct Shape {
    int64_t batch = 0;
    int64_t heads = 0;
    int64_t capacity = 0;  // tokens
    int64_t head_dim = 0;
    int64_t value_dim = 0;  // of the values, where it is not head_dim
  };
  struct Held {
    at::Tensor key, value;  // [batch, heads, length(), head_dim], parts of the cache itself
  };

  KvCache(const Shape& shape, at::ScalarType dtype);

  // Makes an empty cache anew for another number of heads. Throws ContractError where it holds
  // tokens of other heads.
  void set_heads(int64_t heads);

  // Copies in key and value [batch, heads, new tokens, head_dim] of the cache's dtype and returns
  // all that is held then. Throws ContractError for another shape or dtype, for more tokens than
  // there is room for, and for tensors that require a gradient.
  Held append(const at::Tensor& key, const at::Tensor& value);

  int64_t length() const { return length_; }  // tokens
  int64_t capacity() const { return keys_.size(2); }
  int64_t bytes() const { return static_cast<int64_t>(keys_.nbytes() + values_.nbytes()); }

 private:
  at::Tensor keys_, values_;
  int64_t length_ = 0;
};

// A module that can work with a cache: how generation finds them in a model of any family.
class CacheHolder {
 public:
  virtual ~CacheHolder() = default;
  // An empty cache for what this module holds on this rank; parameters must be placed.
  virtual std::shared_ptr<KvCache> make_cache(int64_t batch, int64_t capacity) const = 0;
  // From the next call on, inputs continue what the cache holds, and are appended; nullptr: none.
  virtual void set_cache(std::shared_ptr<KvCache> cache) = 0;
};

}  // namespace shardproof
