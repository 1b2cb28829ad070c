// What the config.json of families with experts have in common. For .cpp files only: it shows the
// JSON library.
#pragma once

#include "models/decoder/options.h"
#include "models/json_fields.h"

namespace shardproof {

// The keys and what transformers' config class takes where the file does not mention them.
struct MoeDefaults {
  std::string experts_key = "num_experts";
  int64_t experts = 0;
  int64_t top_k = 0;
  // The width of an expert; its fallback is none where that is 0.
  std::string width_key = "moe_intermediate_size";
  int64_t width = 0;
};

// Router and experts of `options`: counts, widths, activation. Throws InputError: more experts a
// token than there are, and what is not supported (output_router_logits, router_jitter_noise).
MoeOptions parse_moe(const JsonFields& fields, const DecoderOptions& options,
                     const MoeDefaults& defaults);

}  // namespace shardproof
