#include "models/qwen3/config.h"

#include "models/decoder/parse.h"

namespace shardproof {

DecoderOptions parse_qwen3_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 32, .head_dim = 128});
  options.attention.qkv_bias = fields.boolean("attention_bias", false);
  options.attention.output_bias = options.attention.qkv_bias;
  options.attention.head_norm = options.norm;
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim, {})};
  parse_upper_windows(fields, options);
  return options;
}

}  // namespace shardproof
