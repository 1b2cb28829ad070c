// The configuration of a Llama, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// Keys that may be left out take transformers' defaults: num_key_value_heads = num_attention_heads,
// head_dim = hidden_size / num_attention_heads, rope_theta = 10000 (given at the top, or inside
// `rope_scaling` or `rope_parameters`). Throws InputError naming `origin` and the key: text that is
// not JSON, a missing key, a wrong type or value, an activation other than silu and
// gelu_pytorch_tanh, a rope type other than default, linear and llama3.
DecoderOptions parse_llama_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
