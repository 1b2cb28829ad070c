// The configuration of a Qwen 3 MoE, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// As parse_qwen3_config, but: 4 key/value heads where the file does not mention them, and head_dim
// hidden_size / num_attention_heads; all layers slide where use_sliding_window says so; experts
// (num_experts, 128; num_experts_per_tok, 8; moe_intermediate_size, 768; norm_topk_prob, false) in
// every decoder_sparse_step-th (1) layer that mlp_only_layers does not name. Refused:
// output_router_logits.
DecoderOptions parse_qwen3_moe_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
