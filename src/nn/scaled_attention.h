// Causal attention of queries over keys and values, heads being given.
#pragma once

#include <ATen/core/Tensor.h>

namespace shardproof {

struct ScaledAttentionInputs {
  at::Tensor query;  // [batch, heads, length, head_dim]
  // [batch, key/value heads, keys, ...]: query head i reads head i / (heads / key/value heads). The
  // values may have another head_dim.
  at::Tensor key, value;
  // bool [batch or 1, 1, length, keys], true where a query may attend to a key; undefined: the
  // queries are the last `length` of the tokens, and attend to all keys not after them.
  at::Tensor mask;
  // [heads], one more logit a head in the softmax that nothing is read from; undefined: none. With
  // sinks the scores [batch, heads, length, keys] are in memory at once.
  at::Tensor sinks;
  double scale = 1.0;  // of q . k
};

// [batch, heads, length, head_dim of the values]; there may be no heads. Throws ContractError for a
// mask of another shape.
at::Tensor scaled_attention(const ScaledAttentionInputs& inputs);

}  // namespace shardproof
