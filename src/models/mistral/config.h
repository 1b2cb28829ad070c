// The configuration of a Mistral, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: no biases; 8 key/value heads and a window of 4096 tokens in all
// layers where the file does not mention num_key_value_heads and sliding_window (null: no window).
// Refuses `layer_types` that say otherwise than that: transformers does not read them.
DecoderOptions parse_mistral_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
