#include "models/qwen2/config.h"

#include "models/decoder/parse.h"

namespace shardproof {

DecoderOptions parse_qwen2_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 32});
  options.attention.qkv_bias = true;
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim, {})};
  parse_upper_windows(fields, options);
  return options;
}

}  // namespace shardproof
