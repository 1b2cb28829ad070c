#include "models/decoder/parse.h"

#include "base/check.h"
#include "io/quote.h"

namespace shardproof {
namespace {

AttentionHeads parse_heads(const JsonFields& fields, int64_t hidden,
                           const DecoderDefaults& defaults) {
  AttentionHeads heads;
  heads.queries = fields.size("num_attention_heads");
  const bool no_keys = fields.mentions("num_key_value_heads") || !defaults.key_value_heads;
  heads.keys = fields.size("num_key_value_heads",
                           no_keys ? heads.queries : defaults.key_value_heads.value());
  SP_VALIDATE(heads.queries % heads.keys == 0, "{} ({}) must divide num_attention_heads ({})",
              fields.where("num_key_value_heads"), heads.keys, heads.queries);
  int64_t head_dim = 0;
  if (!fields.mentions("head_dim") && defaults.head_dim) {
    head_dim = *defaults.head_dim;
  } else if (!fields.has("head_dim")) {
    SP_VALIDATE(hidden % heads.queries == 0,
                "{} ({}) must divide hidden_size ({}) where head_dim is not given",
                fields.where("num_attention_heads"), heads.queries, hidden);
    head_dim = hidden / heads.queries;
  }
  heads.head_dim = fields.size("head_dim", head_dim);
  return heads;
}

Activation parse_activation(const JsonFields& fields, const DecoderDefaults& defaults) {
  const std::string name = fields.text(defaults.activation_key, defaults.activation);
  if (name == "silu") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  throw InputError(fmt::format("{} is {}; only silu and gelu_pytorch_tanh are supported",
                               fields.where(defaults.activation_key), quote(name)));
}

std::optional<int64_t> parse_padding(const JsonFields& fields, int64_t vocab_size,
                                     std::optional<int64_t> fallback) {
  const std::string key = "pad_token_id";
  if (!fields.has(key) && (fields.mentions(key) || !fallback)) return {};
  const int64_t given = fields.integer(key, fallback);
  // torch.nn.Embedding counts a negative one from the end.
  const int64_t row = given < 0 ? given + vocab_size : given;
  SP_VALIDATE(row >= 0 && row < vocab_size, "{} is {}{}, outside the vocabulary of {} tokens",
              fields.where(key), given, fields.has(key) ? "" : " where it is not given",
              vocab_size);
  return row;
}

}  // namespace

DecoderOptions parse_decoder(const JsonFields& fields, const DecoderDefaults& defaults) {
  DecoderOptions options;
  options.vocab_size = fields.size("vocab_size");
  options.hidden_size = fields.size("hidden_size");
  options.mlp.width = fields.size("intermediate_size");
  options.layers.resize(fields.size("num_hidden_layers"));
  options.attention.heads = parse_heads(fields, options.hidden_size, defaults);
  options.mlp.activation = parse_activation(fields, defaults);
  options.norm.eps = fields.positive("rms_norm_eps", defaults.rms_norm_eps);
  options.initializer_range = fields.positive("initializer_range", 0.02);
  options.tied = fields.boolean("tie_word_embeddings", defaults.tied);
  options.padding_row = parse_padding(fields, options.vocab_size, defaults.padding_row);
  return options;
}

std::optional<int64_t> parse_window(const JsonFields& fields, std::optional<int64_t> fallback) {
  const std::string key = "sliding_window";
  if (!fields.has(key)) return fields.mentions(key) ? std::nullopt : fallback;
  return fields.size(key);
}

std::vector<bool> parse_layer_types(const JsonFields& fields, int64_t count,
                                    const std::function<bool(int64_t)>& slides) {
  std::vector<bool> sliding(count);
  const std::string key = "layer_types";
  if (!fields.has(key)) {
    for (int64_t i = 0; i < count; ++i) sliding[i] = slides(i);
    return sliding;
  }
  const std::vector<std::string> types = fields.texts(key);
  SP_VALIDATE(static_cast<int64_t>(types.size()) == count,
              "{} has {} entries for num_hidden_layers {}", fields.where(key), types.size(), count);
  for (int64_t i = 0; i < count; ++i) {
    SP_VALIDATE(types[i] == "full_attention" || types[i] == "sliding_attention",
                "{}: {} is not supported; known are full_attention and sliding_attention",
                fields.where(key), quote(types[i]));
    sliding[i] = types[i] == "sliding_attention";
  }
  return sliding;
}

void parse_upper_windows(const JsonFields& fields, DecoderOptions& options) {
  const bool used = fields.boolean("use_sliding_window", false);
  const std::optional<int64_t> window = used ? parse_window(fields, 4096) : std::nullopt;
  const int64_t full = fields.integer("max_window_layers", 28);
  SP_VALIDATE(full >= 0, "{} must be 0 or more, not {}", fields.where("max_window_layers"), full);
  const auto count = static_cast<int64_t>(options.layers.size());
  const std::vector<bool> sliding =
      parse_layer_types(fields, count, [&](int64_t i) { return window.has_value() && i >= full; });
  for (int64_t i = 0; i < count; ++i) {
    if (!sliding[i]) continue;
    SP_VALIDATE(window,
                "{}: layer {} slides, but use_sliding_window and sliding_window give no "
                "window",
                fields.where("layer_types"), i);
    options.layers[i].window = window;
  }
}

}  // namespace shardproof
