// The configuration of the text model of Gemma 3, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: `hidden_activation`, gelu_pytorch_tanh; `mlp_bias` is not read; tied
// embeddings, 4 key/value heads, a head_dim of 256, query_pre_attn_scalar 256 and pad_token_id 0
// where the file does not mention them. Layers slide (sliding_window, 4096) by `layer_types` or,
// but for every sliding_window_pattern-th (6), all; they have a rotary table of their own. The
// tables are given by `rope_parameters` {full_attention, sliding_attention} or by rope_theta
// (10^6), rope_scaling and rope_local_base_freq (10^4). Soft caps and use_bidirectional_attention
// are refused.
DecoderOptions parse_gemma3_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
