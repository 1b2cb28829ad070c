#include "models/deepseek_v3/config.h"

#include <cmath>

#include "base/check.h"
#include "models/decoder/parse.h"
#include "models/decoder/parse_moe.h"

namespace shardproof {
namespace {

// YaRN's magnitude goes into the scale of the scores, once for queries and once for keys.
double yarn_scale(const JsonFields& fields, const RopeOptions& rope) {
  const char* key = fields.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (rope.type == RopeType::kDefault || !fields.has(key)) return 1.0;
  const double m = fields.object(key).number("mscale_all_dim", 0.0);
  return m == 0.0 ? 1.0 : std::pow(yarn_magnitude(rope.factor, m), 2);
}

LatentAttentionOptions parse_attention(const JsonFields& fields, const RopeOptions& rope) {
  LatentAttentionOptions attention;
  attention.heads = fields.size("num_attention_heads");
  if (fields.has("q_lora_rank") || !fields.mentions("q_lora_rank"))
    attention.query_rank = fields.size("q_lora_rank", 1536);
  attention.key_rank = fields.size("kv_lora_rank", 512);
  attention.plain_dim = fields.size("qk_nope_head_dim", 128);
  attention.rope_dim = rope.dim;
  attention.value_dim = fields.size("v_head_dim", 128);
  attention.bias = fields.boolean("attention_bias", false);
  attention.neighbours = fields.boolean("rope_interleave", true);
  const auto width = static_cast<double>(attention.plain_dim + attention.rope_dim);
  attention.scale = yarn_scale(fields, rope) / std::sqrt(width);
  return attention;
}

void parse_router(const JsonFields& fields, RouterOptions& router) {
  router.scoring = RouterOptions::Scoring::kSigmoid;
  router.normalize = fields.boolean("norm_topk_prob", true);
  router.wide_logits = true;
  router.weights = RouterOptions::Type::kWide;
  router.scale = fields.positive("routed_scaling_factor", 2.5);
  router.groups = fields.size("n_group", 8);
  router.top_groups = fields.size("topk_group", 4);
  const int64_t size = router.experts / router.groups;
  SP_VALIDATE(router.experts % router.groups == 0 && size >= 2,
              "{} ({}) must divide n_routed_experts ({}) into groups of 2 or more",
              fields.where("n_group"), router.groups, router.experts);
  SP_VALIDATE(router.top_groups <= router.groups && router.top_groups * size >= router.top_k,
              "{} ({}) of {} groups of {} experts cannot give {} experts a token",
              fields.where("topk_group"), router.top_groups, router.groups, size, router.top_k);
}

}  // namespace

DecoderOptions parse_deepseek_v3_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  // Heads as parse_decoder reads them say nothing here: head_dim is that of the part that is
  // turned.
  DecoderOptions options = parse_decoder(fields, {.head_dim = fields.size("qk_rope_head_dim", 64)});
  const int64_t turned = fields.size("qk_rope_head_dim", 64);
  options.rotary = {parse_rope(
      fields, turned, {.types = {RopeType::kDefault, RopeType::kLinear, RopeType::kYarn}})};
  options.latent_attention = parse_attention(fields, options.rotary[0]);
  options.moe = parse_moe(fields, options,
                          {.experts_key = "n_routed_experts",
                           .experts = 256,
                           .top_k = 8,
                           .width_key = "moe_intermediate_size",
                           .width = 2048});
  parse_router(fields, options.moe->router);
  options.moe->shared =
      GatedMlpOptions{.width = options.moe->experts.width * fields.size("n_shared_experts", 1),
                      .activation = options.mlp.activation};
  const int64_t dense = fields.integer("first_k_dense_replace", 3);
  SP_VALIDATE(dense >= 0, "{} must be 0 or more, not {}", fields.where("first_k_dense_replace"),
              dense);
  for (size_t i = 0; i < options.layers.size(); ++i)
    options.layers[i].sparse = static_cast<int64_t>(i) >= dense;
  return options;
}

}  // namespace shardproof
