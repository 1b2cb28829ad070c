#include "models/mistral/config.h"

#include "base/check.h"
#include "models/decoder/parse.h"

namespace shardproof {

DecoderOptions parse_mistral_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 8});
  options.rotary = {parse_rope(fields, options.attention.heads.head_dim, {})};
  const std::optional<int64_t> window = parse_window(fields, 4096);
  const auto count = static_cast<int64_t>(options.layers.size());
  const std::vector<bool> sliding =
      parse_layer_types(fields, count, [&](int64_t) { return window.has_value(); });
  for (int64_t i = 0; i < count; ++i) {
    SP_VALIDATE(sliding[i] == window.has_value(),
                "{}: layer {} is not what sliding_window makes of all layers of a Mistral",
                fields.where("layer_types"), i);
    options.layers[i].window = window;
  }
  return options;
}

}  // namespace shardproof
