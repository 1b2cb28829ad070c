// The configuration of a Qwen 3, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: norms over each query and key head; `mlp_bias` is not read; 32
// key/value heads and a head_dim of 128 where the file does not mention them; windows by
// use_sliding_window, sliding_window (4096), and layer_types or max_window_layers (28).
DecoderOptions parse_qwen3_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
