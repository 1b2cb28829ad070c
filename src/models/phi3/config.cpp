#include "models/phi3/config.h"

#include "models/decoder/parse.h"

namespace shardproof {

DecoderOptions parse_phi3_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.rms_norm_eps = 1e-5, .padding_row = 32000});
  options.attention.projections = AttentionOptions::Projections::kPacked;
  options.mlp_projections = DecoderOptions::MlpProjections::kPacked;
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim,
                               {.types = {RopeType::kDefault}, .partial = true})};
  const std::optional<int64_t> window = parse_window(fields, {});
  for (DecoderLayerOptions& layer : options.layers) layer.window = window;
  return options;
}

}  // namespace shardproof
