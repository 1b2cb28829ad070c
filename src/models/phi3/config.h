// The configuration of a Phi 3, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: packed projections without biases; partial_rotary_factor (at the top
// or with the rotary settings); rms_norm_eps 1e-5, pad_token_id 32000 and no window where the file
// does not mention them. Rope types other than default, longrope among them, are refused.
DecoderOptions parse_phi3_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
