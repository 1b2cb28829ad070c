#include "models/gemma3/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/decoder/config_test_support.h"

namespace shardproof {
namespace {

using testing::expect_refused;
using testing::json;
using testing::parse_with;
using testing::windows_of;
using Windows = std::vector<int64_t>;

DecoderOptions parse(const json& changes) { return parse_with(parse_gemma3_config, changes); }

TEST(Gemma3Config, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse({{"num_hidden_layers", 7},
                                       {"num_attention_heads", 8},
                                       {"num_key_value_heads", "remove"},
                                       {"pad_token_id", "remove"}});
  EXPECT_EQ(config.attention.heads.keys, 4);
  EXPECT_EQ(config.attention.heads.head_dim, 256);
  EXPECT_EQ(config.attention.scale, 1.0 / 16);
  EXPECT_EQ(config.embedding_scale, std::sqrt(24.0));
  EXPECT_EQ(config.norm.scale, RmsNormOptions::Scale::kOnePlusWeight);
  EXPECT_EQ(config.attention.head_norm->scale, RmsNormOptions::Scale::kOnePlusWeight);
  EXPECT_EQ(config.block_norms, DecoderOptions::BlockNorms::kAround);
  EXPECT_EQ(config.mlp.activation, Activation::kGeluTanh);
  EXPECT_TRUE(config.tied);
  EXPECT_EQ(config.padding_row, 0);
  EXPECT_EQ(windows_of(config), (Windows{4096, 4096, 4096, 4096, 4096, 0, 4096}));
  EXPECT_EQ(config.rotary.at(config.layers[5].rotary).theta, 1e6);
  EXPECT_EQ(config.rotary.at(config.layers[6].rotary).theta, 1e4);
}

TEST(Gemma3Config, BothSpellingsOfTheRotaryTables) {
  const json old = {{"rope_theta", 900.0},
                    {"rope_local_base_freq", 90.0},
                    {"rope_scaling", {{"rope_type", "linear"}, {"factor", 4}}}};
  const json full = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 900.0}};
  const json nested = {
      {"rope_parameters", {{"full_attention", full}, {"sliding_attention", {{"rope_theta", 90}}}}}};
  for (json spelling : {old, nested}) {
    spelling["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
    spelling["sliding_window"] = 3;
    const DecoderOptions config = parse(spelling);
    EXPECT_EQ(windows_of(config), (Windows{0, 3, 0}));
    const RopeOptions& whole = config.rotary.at(config.layers[0].rotary);
    const RopeOptions& sliding = config.rotary.at(config.layers[1].rotary);
    EXPECT_EQ(whole.type, RopeType::kLinear);
    EXPECT_EQ(whole.factor, 4.0);
    EXPECT_EQ(whole.theta, 900.0);
    EXPECT_EQ(sliding.type, RopeType::kDefault);
    EXPECT_EQ(sliding.theta, 90.0);
    EXPECT_EQ(sliding.dim, 256);
  }
}

TEST(Gemma3Config, MistakesAreNamed) {
  const auto refused = [](const json& changes, const std::vector<std::string>& parts) {
    expect_refused(parse_gemma3_config, changes, parts);
  };
  refused({{"final_logit_softcapping", 30.0}}, {"'final_logit_softcapping'", "not supported"});
  refused({{"attn_logit_softcapping", 50.0}}, {"'attn_logit_softcapping'"});
  refused({{"use_bidirectional_attention", true}}, {"'use_bidirectional_attention'"});
  refused({{"hidden_activation", "relu"}}, {"'hidden_activation'", "relu"});
  refused({{"sliding_window", nullptr}}, {"'sliding_window'", "layer 0"});
  refused({{"sliding_window_pattern", 0}}, {"'sliding_window_pattern'"});
  refused({{"query_pre_attn_scalar", -1}}, {"'query_pre_attn_scalar'"});
  refused({{"rope_parameters", {{"rope_type", "default"}}}},
          {"'rope_parameters'", "full_attention"});
  refused({{"rope_parameters", {{"full_attention", {{"rope_type", "linear"}}}}}},
          {"'rope_parameters.full_attention.factor'", "missing"});
  refused({{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}},
           {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}}},
          {"'rope_scaling'", "both"});
}

}  // namespace
}  // namespace shardproof
