#include "models/mixtral/config.h"

#include "models/decoder/parse.h"
#include "models/decoder/parse_moe.h"

namespace shardproof {

DecoderOptions parse_mixtral_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 8, .rms_norm_eps = 1e-5});
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim, {.theta = 1e6})};
  options.moe = parse_moe(fields, options,
                          {.experts_key = "num_local_experts",
                           .experts = 8,
                           .top_k = 2,
                           .width_key = "intermediate_size"});
  options.moe->router.normalize = true;
  options.moe->router.weights = RouterOptions::Type::kWide;
  const std::optional<int64_t> window = parse_window(fields, std::nullopt);
  for (DecoderLayerOptions& layer : options.layers) {
    layer.sparse = true;
    layer.window = window;
  }
  return options;
}

}  // namespace shardproof
