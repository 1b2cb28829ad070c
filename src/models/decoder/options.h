// What a decoder-only transformer is made of: the data that one family differs from another by.
#pragma once

#include <optional>
#include <vector>

#include "nn/attention.h"
#include "nn/latent_attention.h"
#include "nn/mlp.h"
#include "nn/moe_block.h"
#include "nn/rms_norm.h"
#include "nn/rotary.h"

namespace shardproof {

struct DecoderLayerOptions {
  // Tokens that a query sees, itself included; without one: all not after it.
  std::optional<int64_t> window = {};
  size_t rotary = 0;    // which of DecoderOptions::rotary turns its queries and keys
  bool sparse = false;  // DecoderOptions::moe in the place of the MLP
};

struct DecoderOptions {
  enum class BlockNorms {
    kBefore,  // input_layernorm, post_attention_layernorm: what attention and MLP read
    kAround,  // also what they give: post_attention_layernorm and post_feedforward_layernorm, with
              // pre_feedforward_layernorm before the MLP
  };
  enum class MlpProjections { kSeparate, kPacked };  // gate_proj and up_proj, or gate_up_proj

  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  // Of all layers (the MLP: of those that are not sparse); `hidden` is set from hidden_size.
  AttentionOptions attention;
  GatedMlpOptions mlp;
  MlpProjections mlp_projections = MlpProjections::kSeparate;
  // Of all layers where it is given, instead of `attention`.
  std::optional<LatentAttentionOptions> latent_attention = {};
  // Of the layers that are sparse; `hidden` of its parts is set from hidden_size.
  std::optional<MoeOptions> moe = {};
  // Of every norm over the residual stream; `width` is set from hidden_size.
  RmsNormOptions norm;
  BlockNorms block_norms = BlockNorms::kBefore;
  std::vector<RopeOptions> rotary;  // one or more tables
  std::vector<DecoderLayerOptions> layers;
  // The row of the embedding that gets no gradient from lookups.
  std::optional<int64_t> padding_row = {};
  std::optional<double> embedding_scale = {};
  bool tied = false;  // lm_head's weight is the embedding's
  // Standard deviation of what parameters start with where there are no weights.
  double initializer_range = 0.02;
};

}  // namespace shardproof
