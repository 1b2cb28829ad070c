#include "models/gpt_oss/config.h"

#include "base/check.h"
#include "io/quote.h"
#include "models/decoder/parse.h"
#include "models/decoder/parse_moe.h"

namespace shardproof {
namespace {

RopeOptions parse_table(const JsonFields& fields, int64_t head_dim) {
  if (fields.has("rope_scaling") || fields.has("rope_parameters")) {
    return parse_rope(
        fields, head_dim,
        {.theta = 150000.0, .types = {RopeType::kDefault, RopeType::kLinear, RopeType::kYarn}});
  }
  return {.type = RopeType::kYarn,
          .dim = head_dim,
          .theta = fields.positive("rope_theta", 150000.0),
          .factor = 32.0,
          .original_max_position_embeddings = 4096,
          .truncate = false,
          .attention_factor = yarn_magnitude(32.0)};
}

void parse_windows(const JsonFields& fields, DecoderOptions& options) {
  const std::optional<int64_t> window = parse_window(fields, 128);
  const auto count = static_cast<int64_t>(options.layers.size());
  const std::vector<bool> sliding =
      parse_layer_types(fields, count, [](int64_t i) { return i % 2 == 0; });
  for (int64_t i = 0; i < count; ++i) {
    options.layers[i].sparse = true;
    if (!sliding[i]) continue;
    SP_VALIDATE(window, "{} is null, but layer {} slides", fields.where("sliding_window"), i);
    options.layers[i].window = window;
  }
}

// What the experts are stored in is read off the tensors; other methods would be misread.
void check_quantization(const JsonFields& fields) {
  if (!fields.has("quantization_config")) return;
  const JsonFields quantization = fields.object("quantization_config");
  const std::string method = quantization.text("quant_method");
  SP_VALIDATE(method == "mxfp4", "{} is {}; only mxfp4 is supported",
              quantization.where("quant_method"), quote(method));
}

}  // namespace

DecoderOptions parse_gpt_oss_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  check_quantization(fields);
  DecoderOptions options =
      parse_decoder(fields, {.key_value_heads = 8, .head_dim = 64, .rms_norm_eps = 1e-5});
  options.norm.scale = RmsNormOptions::Scale::kWeightWide;
  options.attention.qkv_bias = fields.boolean("attention_bias", true);
  options.attention.output_bias = options.attention.qkv_bias;
  options.attention.sinks = true;
  options.rotary = {parse_table(fields, options.attention.heads.head_dim)};
  parse_windows(fields, options);
  options.moe = parse_moe(fields, options,
                          {.experts_key = "num_local_experts",
                           .experts = 128,
                           .top_k = 4,
                           .width_key = "intermediate_size"});
  options.moe->router_name = "router";
  options.moe->router.scoring = RouterOptions::Scoring::kTopKSoftmax;
  options.moe->router.bias = true;
  ExpertsOptions& experts = options.moe->experts;
  experts.packing = ExpertsOptions::Packing::kInterleaved;
  experts.order = ExpertsOptions::Order::kInOut;
  experts.bias = true;
  experts.clamped_gate = {.alpha = fields.positive("swiglu_alpha", 1.702),
                          .limit = fields.positive("swiglu_limit", 7.0)};
  return options;
}

}  // namespace shardproof
