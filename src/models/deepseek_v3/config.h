// The configuration of a DeepSeek-V3, as config.json of transformers states it.
#pragma once

#include <string>

#include "models/decoder/options.h"

namespace shardproof {

// Latent attention (num_attention_heads, 128; q_lora_rank, 1536, may be null; kv_lora_rank, 512;
// qk_nope_head_dim, 128; qk_rope_head_dim, 64; v_head_dim, 128; rope_interleave, true;
// attention_bias); from layer first_k_dense_replace (3) on experts (n_routed_experts, 256;
// num_experts_per_tok, 8; moe_intermediate_size, 2048) in n_group (8) groups, topk_group (4) of
// which take part, norm_topk_prob (true), routed_scaling_factor (2.5), and n_shared_experts (1)
// that all tokens pass. The rotary table may be YaRN's. Refused: output_router_logits. Extra layers
// for further tokens (num_nextn_predict_layers) are no part of the model, as in transformers.
DecoderOptions parse_deepseek_v3_config(const std::string& json, const std::string& origin);

}  // namespace shardproof
