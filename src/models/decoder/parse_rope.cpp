#include <algorithm>

#include "base/check.h"
#include "io/quote.h"
#include "models/decoder/parse.h"

namespace shardproof {
namespace {

const char* name_of(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kLlama3:
      return "llama3";
    case RopeType::kYarn:
      return "yarn";
  }
  return "";
}

RopeType parse_type(const JsonFields& fields, const RopeRules& rules) {
  // "type" is what files older than "rope_type" say.
  const std::string key = fields.has("rope_type") ? "rope_type" : "type";
  const std::string given = fields.text(key, "default");
  std::vector<std::string> known;
  for (const RopeType type : rules.types) {
    if (given == name_of(type)) return type;
    known.push_back(name_of(type));
  }
  throw InputError(fmt::format("{}: the rope type {} is not supported; known here: {}",
                               fields.where(key), quote(given), fmt::join(known, ", ")));
}

// How many of the head_dim positions of a head are turned; `inner` goes before `top`.
int64_t turned(const JsonFields& top, const JsonFields& inner, int64_t head_dim, bool partial) {
  const std::string key = "partial_rotary_factor";
  const JsonFields& fields = inner.has(key) ? inner : top;
  const double factor = fields.positive(key, 1.0);
  SP_VALIDATE(factor == 1.0 || partial,
              "{} must be 1: heads of this family that are turned in part are not supported",
              fields.where(key));
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  SP_VALIDATE(factor <= 1.0 && dim > 0 && dim % 2 == 0,
              "{} ({}): of a head of {} it turns {} positions, which must be an even part: rotary "
              "embedding pairs its halves",
              fields.where(factor == 1.0 ? "head_dim" : key), factor, head_dim, dim);
  return dim;
}

void parse_yarn(const JsonFields& fields, RopeOptions& rope) {
  rope.beta_fast = fields.positive("beta_fast", 32.0);
  rope.beta_slow = fields.positive("beta_slow", 1.0);
  SP_VALIDATE(rope.beta_slow < rope.beta_fast, "{} ({}) must be below beta_fast ({})",
              fields.where("beta_slow"), rope.beta_slow, rope.beta_fast);
  rope.truncate = fields.boolean("truncate", true);
  if (fields.has("attention_factor")) {
    rope.attention_factor = fields.positive("attention_factor");
  } else if (fields.number("mscale", 0) != 0 && fields.number("mscale_all_dim", 0) != 0) {
    rope.attention_factor = yarn_magnitude(rope.factor, fields.number("mscale")) /
                            yarn_magnitude(rope.factor, fields.number("mscale_all_dim"));
  } else {
    rope.attention_factor = yarn_magnitude(rope.factor);
  }
}

}  // namespace

RopeOptions parse_rope_object(const JsonFields& top, const JsonFields& fields, int64_t head_dim,
                              const RopeRules& rules) {
  RopeOptions rope;
  rope.dim = turned(top, fields, head_dim, rules.partial);
  rope.theta = fields.positive("rope_theta", rules.theta);
  rope.type = parse_type(fields, rules);
  if (rope.type == RopeType::kDefault) return rope;
  rope.factor = fields.positive("factor");
  if (rope.type == RopeType::kLinear) return rope;
  if (rope.type == RopeType::kYarn) {
    parse_yarn(fields, rope);
  } else {
    rope.low_freq_factor = fields.positive("low_freq_factor");
    rope.high_freq_factor = fields.positive("high_freq_factor");
    SP_VALIDATE(rope.low_freq_factor < rope.high_freq_factor,
                "{} ({}) must be above low_freq_factor ({})", fields.where("high_freq_factor"),
                rope.high_freq_factor, rope.low_freq_factor);
  }
  // Where the file does not say it, the length of the model is taken.
  rope.original_max_position_embeddings =
      fields.has("original_max_position_embeddings") || !top.has("max_position_embeddings")
          ? fields.positive("original_max_position_embeddings")
          : top.positive("max_position_embeddings");
  return rope;
}

RopeOptions parse_rope(const JsonFields& top, int64_t head_dim, const RopeRules& rules) {
  RopeRules with_theta = rules;
  with_theta.theta = top.positive("rope_theta", rules.theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (top.has(key)) return parse_rope_object(top, top.object(key), head_dim, with_theta);
  }
  return {.dim = turned(top, top, head_dim, rules.partial), .theta = with_theta.theta};
}

}  // namespace shardproof
