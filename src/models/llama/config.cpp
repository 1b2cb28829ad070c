#include "models/llama/config.h"

#include "base/check.h"
#include "io/quote.h"
#include "models/json_fields.h"

namespace shardproof {
namespace {

constexpr double kDefaultTheta = 10000.0;

// The settings of either spelling; transformers takes the older one where a file has both.
RopeOptions parse_scaling(const JsonFields& top, const std::string& key, double theta) {
  const JsonFields fields = top.object(key);
  RopeOptions rope;
  rope.theta = fields.positive("rope_theta", theta);
  // "type" is what files older than "rope_type" say.
  const std::string type_key = fields.has("rope_type") ? "rope_type" : "type";
  const std::string type = fields.text(type_key, "default");
  if (fields.has("partial_rotary_factor")) {
    SP_VALIDATE(fields.positive("partial_rotary_factor") == 1.0,
                "{} must be 1 for a Llama: heads that are turned in part are not supported",
                fields.where("partial_rotary_factor"));
  }
  if (type == "default") return rope;
  SP_VALIDATE(type == "linear" || type == "llama3",
              "{}: the rope type {} is not supported; known are default, linear and llama3",
              fields.where(type_key), quote(type));
  rope.factor = fields.positive("factor");
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    return rope;
  }
  rope.type = RopeType::kLlama3;
  rope.low_freq_factor = fields.positive("low_freq_factor");
  rope.high_freq_factor = fields.positive("high_freq_factor");
  SP_VALIDATE(rope.low_freq_factor < rope.high_freq_factor,
              "{} ({}) must be above low_freq_factor ({})", fields.where("high_freq_factor"),
              rope.high_freq_factor, rope.low_freq_factor);
  // Where the file does not say it, the length of the model is taken.
  rope.original_max_position_embeddings =
      fields.has("original_max_position_embeddings") || !top.has("max_position_embeddings")
          ? fields.positive("original_max_position_embeddings")
          : top.positive("max_position_embeddings");
  return rope;
}

RopeOptions parse_rope(const JsonFields& top) {
  const double theta = top.positive("rope_theta", kDefaultTheta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (top.has(key)) return parse_scaling(top, key, theta);
  }
  return {.theta = theta};
}

std::optional<int64_t> parse_padding(const JsonFields& top, int64_t vocab_size) {
  if (!top.has("pad_token_id")) return {};
  const int64_t given = top.integer("pad_token_id");
  // torch.nn.Embedding counts a negative one from the end.
  const int64_t row = given < 0 ? given + vocab_size : given;
  SP_VALIDATE(row >= 0 && row < vocab_size, "{} is {}, outside the vocabulary of {} tokens",
              top.where("pad_token_id"), given, vocab_size);
  return row;
}

}  // namespace

LlamaConfig parse_llama_config(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  LlamaConfig config;
  config.vocab_size = fields.size("vocab_size");
  config.hidden_size = fields.size("hidden_size");
  config.intermediate_size = fields.size("intermediate_size");
  config.num_hidden_layers = fields.size("num_hidden_layers");
  config.num_attention_heads = fields.size("num_attention_heads");
  config.num_key_value_heads = fields.size("num_key_value_heads", config.num_attention_heads);
  SP_VALIDATE(config.num_attention_heads % config.num_key_value_heads == 0,
              "{} ({}) must divide num_attention_heads ({})", fields.where("num_key_value_heads"),
              config.num_key_value_heads, config.num_attention_heads);
  if (!fields.has("head_dim")) {
    SP_VALIDATE(config.hidden_size % config.num_attention_heads == 0,
                "{} ({}) must divide hidden_size ({}) where head_dim is not given",
                fields.where("num_attention_heads"), config.num_attention_heads,
                config.hidden_size);
  }
  config.head_dim = fields.size("head_dim", config.hidden_size / config.num_attention_heads);
  SP_VALIDATE(config.head_dim % 2 == 0, "{} ({}) must be even: rotary embedding pairs its halves",
              fields.where("head_dim"), config.head_dim);
  const std::string activation = fields.text("hidden_act", "silu");
  SP_VALIDATE(activation == "silu", "{} is {}; only silu is supported", fields.where("hidden_act"),
              quote(activation));
  config.rms_norm_eps = fields.positive("rms_norm_eps", 1e-6);
  config.initializer_range = fields.positive("initializer_range", 0.02);
  config.attention_bias = fields.boolean("attention_bias", false);
  config.mlp_bias = fields.boolean("mlp_bias", false);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  config.pad_token_id = parse_padding(fields, config.vocab_size);
  config.rope = parse_rope(fields);
  config.rope.dim = config.head_dim;
  return config;
}

}  // namespace shardproof
