// Multi-head latent attention (DeepSeek-V2, section 2.1 of its report): queries, keys and values
// come from a compressed form of the token, and all heads share the part of the key that is turned.
#pragma once

#include "nn/kv_cache.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"
#include "nn/split_linear.h"

namespace shardproof {

struct LatentAttentionOptions {
  int64_t hidden = 0;
  int64_t heads = 0;
  std::optional<int64_t> query_rank =
      {};                 // width of a query's compressed form; none: not compressed
  int64_t key_rank = 0;   // of the one that keys and values share
  int64_t plain_dim = 0;  // positions of a query or key head that are not turned
  int64_t rope_dim = 0;   // and those that are
  int64_t value_dim = 0;
  bool bias = false;        // of q_a_proj, kv_a_proj_with_mqa and o_proj
  bool neighbours = false;  // neighbours are pairs to be turned, not halves
  // Of q . k before the softmax; 1 / sqrt(plain_dim + rope_dim) where it is not given.
  std::optional<double> scale = {};
  double eps = 1e-6;  // of the norms of the compressed forms
};

// Inputs and output as of Attention (nn/attention.h), cos and sin [batch or 1, length, rope_dim].
// Children q_a_proj, q_a_layernorm and q_b_proj, or q_proj; kv_a_proj_with_mqa, kv_a_layernorm,
// kv_b_proj, o_proj. Local heads are those that q_b_proj (or q_proj) and kv_b_proj gave, which must
// be the same. A cache holds the local heads' keys and values, not the compressed form.
class LatentAttention final : public Module, public CacheHolder {
 public:
  explicit LatentAttention(LatentAttentionOptions options);

  std::vector<Link> links() const override;

  std::shared_ptr<KvCache> make_cache(int64_t batch, int64_t capacity) const override;
  void set_cache(std::shared_ptr<KvCache> cache) override { cache_ = std::move(cache); }
  // Tokens that the cache holds; 0 without one.
  int64_t cached() const { return cache_ ? cache_->length() : 0; }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  at::Tensor project_query(const at::Tensor& x);
  std::vector<int64_t> heads_given(const Linear& projection, const at::Tensor& output) const;
  // x [..., rope_dim], turned.
  at::Tensor turned(const at::Tensor& x, const NamedTensors& inputs) const;

  LatentAttentionOptions options_;
  int64_t query_dim_ = 0;  // of a head, as of a key
  double scale_ = 1.0;
  std::shared_ptr<Linear> q_, q_a_, q_b_, kv_b_, o_;  // q_, or q_a_ and q_b_
  std::shared_ptr<SplitLinear> kv_a_;
  std::shared_ptr<RmsNorm> q_norm_, kv_norm_;
  std::shared_ptr<KvCache> cache_;
};

}  // namespace shardproof
