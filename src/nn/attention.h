// Causal grouped-query attention over whatever heads are held.
#pragma once

#include <array>

#include "nn/head_map.h"
#include "nn/initial_values.h"
#include "nn/kv_cache.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"

namespace shardproof {

struct AttentionOptions {
  enum class Projections {
    kSeparate,  // q_proj, k_proj, v_proj
    kPacked,    // qkv_proj: the rows of q, then of k, then of v
  };
  int64_t hidden = 0;
  AttentionHeads heads;
  Projections projections = Projections::kSeparate;
  bool qkv_bias = false;     // of the projections of the input
  bool output_bias = false;  // of o_proj
  // Of q . k before the softmax; 1 / sqrt(head_dim) where it is not given.
  std::optional<double> scale = {};
  // q_norm and k_norm, over head_dim, of each query and key before it is turned; `width` and
  // `in_runs` are set here.
  std::optional<RmsNormOptions> head_norm = {};
  // A parameter "sinks" [query heads]: one more logit a head in the softmax, for nothing to attend
  // to. The scores [batch, heads, length, keys] then are in memory at once.
  bool sinks = false;
};

// Inputs "hidden_states" [batch, length, hidden], "cos" and "sin" [batch or 1, length, turned],
// where turned = head_dim or, for heads that are turned in part, less, and, optional, "mask", bool
// [batch or 1, 1, length, keys], true where a query may attend to a key (no row without one;
// without a mask: to all keys not after it). Output "output" [batch, length, hidden]: the part that
// the local heads give. With a cache the keys are those that it holds, the current ones last; else
// keys = length. Children q_proj, k_proj, v_proj or qkv_proj, q_norm and k_norm where asked for,
// o_proj.
//
// Which heads are local follows from what the projections gave: all of them where an output has the
// whole width (whatever is held of its weight), else those whose rows are held; none at all works.
// Cuts: queries (and o_proj's inputs) by key/value group, shared head by head where ranks are more
// than groups; keys and values by head, copied there. Throws ContractError where the key/value head
// of a local query head is not local, keys and values are other heads, or o_proj takes another
// width than the local query heads have; and where the sinks that are held are not those of the
// local query heads.
class Attention final : public Module, public CacheHolder, public StatesInitialValues {
 public:
  explicit Attention(AttentionOptions options);

  std::vector<Link> links() const override;

  // For the key/value heads that are held; a projection that gives others lets the cache, still
  // empty, be made anew.
  std::shared_ptr<KvCache> make_cache(int64_t batch, int64_t capacity) const override;
  void set_cache(std::shared_ptr<KvCache> cache) override { cache_ = std::move(cache); }
  // Tokens that the cache holds; 0 without one.
  int64_t cached() const { return cache_ ? cache_->length() : 0; }
  InitialValues initial_values(const std::string&) const override { return {}; }  // of the sinks

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  // [batch, local heads, length, head_dim] each, normed where asked for, with the global heads that
  // they are.
  struct Projected {
    at::Tensor query, key, value;
    std::vector<int64_t> query_heads, key_heads;
  };
  Projected project(const at::Tensor& x);
  Projected project_packed(const at::Tensor& x);
  // Rows [q, k, v] of the packed projection, as intervals of the whole.
  std::array<Interval, 3> packed_sections() const;
  // The local heads of an output of `width` made of rows of which `held` are held.
  std::vector<int64_t> local_heads(const Module& projection, int64_t width, int64_t heads,
                                   const Intervals& held) const;
  // For each local query head, where its key/value head lies among the local ones.
  std::vector<int64_t> local_key_positions(const Projected& projected) const;
  // [batch, length, heads * head_dim] -> [batch, heads, length, head_dim]
  at::Tensor by_head(const at::Tensor& projected) const;
  AttentionHeads heads_;
  double scale_;
  std::shared_ptr<Linear> q_, k_, v_, qkv_, o_;
  std::shared_ptr<RmsNorm> q_norm_, k_norm_;
  ParamPtr sinks_;
  std::shared_ptr<KvCache> cache_;
};

}  // namespace shardproof
