// The configuration of a Llama, as config.json of transformers states it.
#pragma once

#include <optional>
#include <string>

#include "nn/rotary.h"

namespace shardproof {

struct LlamaConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool tie_word_embeddings = false;
  // The row of the embedding that gets no gradient from lookups.
  std::optional<int64_t> pad_token_id = {};
  RopeOptions rope = {};
};

// Keys that may be left out take transformers' defaults: num_key_value_heads = num_attention_heads,
// head_dim = hidden_size / num_attention_heads, rope_theta = 10000 (given at the top, or inside
// `rope_scaling` or `rope_parameters`). Throws InputError naming `origin` and the key: text that is
// not JSON, a missing key, a wrong type or value, an activation other than silu, a rope type other
// than default, linear and llama3.
LlamaConfig parse_llama_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
