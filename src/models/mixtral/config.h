// The configuration of a Mixtral, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_llama_config, but: experts in every layer (num_local_experts, 8; num_experts_per_tok, 2;
// intermediate_size is theirs); no biases are read; 8 key/value heads and rope_theta 10^6 where the
// file does not mention them; every layer slides where sliding_window is given. Refused:
// output_router_logits, router_jitter_noise.
DecoderOptions parse_mixtral_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
