// Causal grouped-query attention over whatever heads are held.
#pragma once

#include "nn/head_map.h"
#include "nn/kv_cache.h"
#include "nn/linear.h"

namespace shardproof {

struct AttentionOptions {
  int64_t hidden = 0;
  AttentionHeads heads;
  bool bias = false;  // of all four projections
};

// Inputs "hidden_states" [batch, length, hidden], "cos" and "sin" [batch or 1, length, head_dim]
// and, optional, "mask", bool [batch or 1, 1, length, keys], true where a query may attend to a key
// (no row without one; without a mask: to all keys not after it). Output "output" [batch, length,
// hidden]: the part that the held heads give. With a cache the keys are those that it holds, the
// current ones last; else keys = length. Children q_proj, k_proj, v_proj, o_proj. Which heads are
// local is read from what is held of q_proj and k_proj; none at all works. Cuts: queries (and
// o_proj's inputs) by key/value group, shared head by head where ranks are more than groups; keys
// and values by head, copied there. Throws ContractError where the key/value head of a held query
// head is not held, or v_proj or o_proj hold other heads than k_proj or q_proj.
class Attention final : public Module, public CacheHolder {
 public:
  explicit Attention(AttentionOptions options);

  std::shared_ptr<KvCache> make_cache(int64_t batch, int64_t capacity) const override;
  void set_cache(std::shared_ptr<KvCache> cache) override { cache_ = std::move(cache); }
  // Tokens that the cache holds; 0 without one.
  int64_t cached() const { return cache_ ? cache_->length() : 0; }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::vector<int64_t> local_key_positions() const;
  // [batch, length, heads * head_dim] -> [batch, heads, length, head_dim]
  at::Tensor by_head(const at::Tensor& projected) const;
  // All query heads over the key/value heads that they read, all [batch, heads, tokens, head_dim].
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& mask) const;

  AttentionHeads heads_;
  std::shared_ptr<Linear> q_, k_, v_, o_;
  std::shared_ptr<KvCache> cache_;
};

}  // namespace shardproof
