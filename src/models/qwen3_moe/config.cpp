#include "models/qwen3_moe/config.h"

#include <algorithm>

#include "models/decoder/parse.h"
#include "models/decoder/parse_moe.h"

namespace shardproof {
namespace {

// transformers takes either name.
std::string experts_key(const JsonFields& fields) {
  return fields.has("num_local_experts") ? "num_local_experts" : "num_experts";
}

}  // namespace

DecoderOptions parse_qwen3_moe_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 4});
  options.attention.qkv_bias = fields.boolean("attention_bias", false);
  options.attention.output_bias = options.attention.qkv_bias;
  options.attention.head_norm = options.norm;
  options.rotary = {parse_rope(
      fields, options.attention.heads.head_dim,
      {.types = {RopeType::kDefault, RopeType::kLinear, RopeType::kLlama3, RopeType::kYarn}})};
  options.moe =
      parse_moe(fields, options,
                {.experts_key = experts_key(fields), .experts = 128, .top_k = 8, .width = 768});
  options.moe->router.normalize = fields.boolean("norm_topk_prob", false);

  const int64_t step = fields.size("decoder_sparse_step", 1);
  const std::vector<int64_t> dense =
      fields.has("mlp_only_layers") ? fields.integers("mlp_only_layers") : std::vector<int64_t>();
  const bool slides = fields.boolean("use_sliding_window", false);
  const std::optional<int64_t> window = slides ? parse_window(fields, 4096) : std::nullopt;
  for (size_t i = 0; i < options.layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    options.layers[i].window = window;
    options.layers[i].sparse =
        (index + 1) % step == 0 && std::find(dense.begin(), dense.end(), index) == dense.end();
  }
  return options;
}

}  // namespace shardproof
