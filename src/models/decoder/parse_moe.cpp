#include "models/decoder/parse_moe.h"

#include "base/check.h"

namespace shardproof {
namespace {

std::optional<int64_t> fallback(int64_t value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

MoeOptions parse_moe(const JsonFields& fields, const DecoderOptions& options,
                     const MoeDefaults& defaults) {
  SP_VALIDATE(!fields.boolean("output_router_logits", false),
              "{} is true: the load-balancing loss is not supported yet; set it to false",
              fields.where("output_router_logits"));
  const std::string jitter = "router_jitter_noise";
  SP_VALIDATE(fields.number(jitter, 0.0) == 0.0,
              "{} is not 0: noise on the router's input is not supported", fields.where(jitter));
  MoeOptions moe;
  moe.router.experts = fields.size(defaults.experts_key, fallback(defaults.experts));
  moe.router.top_k = fields.size("num_experts_per_tok", fallback(defaults.top_k));
  SP_VALIDATE(moe.router.top_k <= moe.router.experts, "{} ({}) is more than {} ({})",
              fields.where("num_experts_per_tok"), moe.router.top_k, defaults.experts_key,
              moe.router.experts);
  moe.experts.width = fields.size(defaults.width_key, fallback(defaults.width));
  moe.experts.activation = options.mlp.activation;
  return moe;
}

}  // namespace shardproof
