// The configuration of a GPT-OSS, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: attention sinks; experts in every layer (num_local_experts, 128;
// num_experts_per_tok, 4; intermediate_size is theirs) with biases and a clamped gate
// (swiglu_alpha, swiglu_limit), a router with bias; attention_bias is true, head_dim 64, there are
// 8 key/value heads, and the window is 128 where the file does not mention them. Layers slide by
// layer_types or, where that is not given, every second from the first on. The rotary table may be
// YaRN's, and is where none is given. Refused: output_router_logits.
DecoderOptions parse_gpt_oss_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
