#include "models/llama/config.h"

#include "models/decoder/parse.h"

namespace shardproof {

DecoderOptions parse_llama_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {});
  options.attention.qkv_bias = fields.boolean("attention_bias", false);
  options.attention.output_bias = options.attention.qkv_bias;
  options.mlp.bias = fields.boolean("mlp_bias", false);
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim, {})};
  return options;
}

}  // namespace shardproof
