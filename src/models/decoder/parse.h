// What the config.json of decoder families have in common, with the defaults of each as data. For
// .cpp files only: it shows the JSON library. All throw InputError naming file and key: a missing
// key, a wrong type or value, what is not supported.
#pragma once

#include "models/decoder/options.h"
#include "models/json_fields.h"

namespace shardproof {

// What transformers' config class of the family takes where the file does not mention a key.
struct DecoderDefaults {
  std::optional<int64_t> key_value_heads = {};  // without one: as many as query heads
  std::optional<int64_t> head_dim = {};         // without one: hidden_size / num_attention_heads
  std::string activation_key = "hidden_act";
  std::string activation = "silu";
  double rms_norm_eps = 1e-6;
  bool tied = false;
  std::optional<int64_t> padding_row = {};
};

// Sizes, heads, activation, eps of the norms, tied, padding row, initializer_range; layers without
// windows. Not: biases, rotary tables and what only one family has.
DecoderOptions parse_decoder(const JsonFields& fields, const DecoderDefaults& defaults);

struct RopeRules {
  double theta = 10000.0;  // where the file gives none
  std::vector<RopeType> types = {RopeType::kDefault, RopeType::kLinear, RopeType::kLlama3};
  bool partial = false;  // heads may be turned in part (partial_rotary_factor)
};

// The one table of a model, from `rope_scaling` (which transformers takes where a file has both) or
// `rope_parameters`, with `rope_theta` inside or at the top.
RopeOptions parse_rope(const JsonFields& top, int64_t head_dim, const RopeRules& rules);
// The same from the object `fields`, which lies anywhere in `top`; `rules.theta` where it has none.
RopeOptions parse_rope_object(const JsonFields& top, const JsonFields& fields, int64_t head_dim,
                              const RopeRules& rules);

// `sliding_window`: `fallback` where it is not mentioned, none where it is null.
std::optional<int64_t> parse_window(const JsonFields& fields, std::optional<int64_t> fallback);

// For each of `count` layers whether it is "sliding_attention" (or "full_attention") by
// `layer_types`; where that is not given, what `slides` says.
std::vector<bool> parse_layer_types(const JsonFields& fields, int64_t count,
                                    const std::function<bool(int64_t)>& slides);

// As Qwen has them: `use_sliding_window`, `sliding_window`, and which layers by `layer_types` or
// from `max_window_layers` on.
void parse_upper_windows(const JsonFields& fields, DecoderOptions& options);

}  // namespace shardproof
