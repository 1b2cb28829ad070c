#include "models/gemma3/config.h"

#include <cmath>

#include "base/check.h"
#include "models/decoder/parse.h"

namespace shardproof {
namespace {

constexpr size_t kFull = 0, kSliding = 1;  // of the rotary tables

void refuse_unsupported(const JsonFields& fields) {
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    SP_VALIDATE(!fields.has(key), "{} is not supported: leave it out or null", fields.where(key));
  SP_VALIDATE(!fields.boolean("use_bidirectional_attention", false),
              "{} is not supported: attention here is causal",
              fields.where("use_bidirectional_attention"));
}

std::vector<RopeOptions> parse_tables(const JsonFields& fields, int64_t head_dim) {
  const RopeRules full = {.theta = fields.positive("rope_theta", 1e6)};
  const RopeRules sliding = {.theta = fields.positive("rope_local_base_freq", 1e4)};
  std::vector<RopeOptions> tables = {{.dim = head_dim, .theta = full.theta},
                                     {.dim = head_dim, .theta = sliding.theta}};
  if (fields.has("rope_parameters")) {
    const JsonFields nested = fields.object("rope_parameters");
    SP_VALIDATE(!nested.has("rope_type") && !nested.has("rope_theta"),
                "{} must hold full_attention and sliding_attention, each with settings of its own",
                fields.where("rope_parameters"));
    if (nested.has("full_attention"))
      tables[kFull] = parse_rope_object(fields, nested.object("full_attention"), head_dim, full);
    if (nested.has("sliding_attention")) {
      tables[kSliding] =
          parse_rope_object(fields, nested.object("sliding_attention"), head_dim, sliding);
    }
    SP_VALIDATE(!nested.has("full_attention") || !fields.has("rope_scaling"),
                "{} and rope_parameters.full_attention are both given: leave one out",
                fields.where("rope_scaling"));
  }
  if (fields.has("rope_scaling"))
    tables[kFull] = parse_rope_object(fields, fields.object("rope_scaling"), head_dim, full);
  return tables;
}

void parse_windows(const JsonFields& fields, DecoderOptions& options) {
  const std::optional<int64_t> window = parse_window(fields, 4096);
  const int64_t pattern = fields.size("sliding_window_pattern", 6);
  const auto count = static_cast<int64_t>(options.layers.size());
  const std::vector<bool> sliding =
      parse_layer_types(fields, count, [&](int64_t i) { return (i + 1) % pattern != 0; });
  for (int64_t i = 0; i < count; ++i) {
    options.layers[i].rotary = sliding[i] ? kSliding : kFull;
    if (!sliding[i]) continue;
    SP_VALIDATE(window, "{} is null, but layer {} slides", fields.where("sliding_window"), i);
    options.layers[i].window = window;
  }
}

}  // namespace

DecoderOptions parse_gemma3_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  DecoderOptions options = parse_decoder(fields, {.key_value_heads = 4,
                                                  .head_dim = 256,
                                                  .activation_key = "hidden_activation",
                                                  .activation = "gelu_pytorch_tanh",
                                                  .tied = true,
                                                  .padding_row = 0});
  refuse_unsupported(fields);
  options.norm.scale = RmsNormOptions::Scale::kOnePlusWeight;
  options.block_norms = DecoderOptions::BlockNorms::kAround;
  options.embedding_scale = std::sqrt(static_cast<double>(options.hidden_size));
  options.attention.qkv_bias = fields.boolean("attention_bias", false);
  options.attention.output_bias = options.attention.qkv_bias;
  options.attention.head_norm = options.norm;
  options.attention.scale =
      1.0 / std::sqrt(static_cast<double>(fields.size("query_pre_attn_scalar", 256)));
  options.rotary = parse_tables(fields, options.attention.heads.head_dim);
  parse_windows(fields, options);
  return options;
}

}  // namespace shardproof
