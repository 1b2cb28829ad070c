// The configuration of a Qwen 2, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: q_proj, k_proj and v_proj have biases, o_proj has none; 32 key/value
// heads where the file does not mention them; windows by use_sliding_window, sliding_window (4096),
// and layer_types or max_window_layers (28).
DecoderOptions parse_qwen2_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
