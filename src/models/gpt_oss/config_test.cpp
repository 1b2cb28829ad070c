#include "models/gpt_oss/config.h"

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

DecoderOptions parse(const json& changes) { return parse_with(parse_gpt_oss_config, changes); }

void refused(const json& changes, const std::vector<std::string>& parts) {
  expect_refused(parse_gpt_oss_config, changes, parts);
}

std::vector<bool> sparse_of(const DecoderOptions& options) {
  std::vector<bool> sparse;
  for (const DecoderLayerOptions& layer : options.layers) sparse.push_back(layer.sparse);
  return sparse;
}

TEST(GptOssConfig, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config =
      parse({{"num_attention_heads", 16}, {"num_key_value_heads", "remove"}});
  EXPECT_EQ(config.attention.heads.keys, 8);
  EXPECT_EQ(config.attention.heads.head_dim, 64);
  EXPECT_TRUE(config.attention.sinks && config.attention.qkv_bias && config.attention.output_bias);
  EXPECT_EQ(config.norm.scale, RmsNormOptions::Scale::kWeightWide);
  EXPECT_EQ(windows_of(config), (Windows{128, 0, 128}));
  EXPECT_EQ(sparse_of(config), std::vector<bool>(3, true));
  const RopeOptions& rope = config.rotary.at(0);
  EXPECT_EQ(rope.type, RopeType::kYarn);
  EXPECT_EQ(rope.dim, 64);
  EXPECT_EQ(rope.theta, 150000.0);
  EXPECT_EQ(rope.factor, 32.0);
  EXPECT_EQ(rope.original_max_position_embeddings, 4096);
  EXPECT_FALSE(rope.truncate);
  EXPECT_DOUBLE_EQ(rope.attention_factor, 0.1 * std::log(32.0) + 1);
  const MoeOptions& moe = config.moe.value();
  EXPECT_EQ(moe.router_name, "router");
  EXPECT_EQ(moe.router.experts, 128);
  EXPECT_EQ(moe.router.top_k, 4);
  EXPECT_TRUE(moe.router.bias && moe.experts.bias);
  EXPECT_EQ(moe.router.scoring, RouterOptions::Scoring::kTopKSoftmax);
  EXPECT_EQ(moe.experts.packing, ExpertsOptions::Packing::kInterleaved);
  EXPECT_EQ(moe.experts.order, ExpertsOptions::Order::kInOut);
  EXPECT_EQ(moe.experts.clamped_gate->alpha, 1.702);
  EXPECT_EQ(moe.experts.clamped_gate->limit, 7.0);
}

// Neither spelling, nor `truncate`, may be passed over.
TEST(GptOssConfig, BothSpellingsOfYarn) {
  json yarn = {{"rope_type", "yarn"},
               {"factor", 8},
               {"beta_fast", 16},
               {"beta_slow", 2},
               {"original_max_position_embeddings", 64}};
  for (const bool scaling : {false, true}) {
    for (const bool truncate : {false, true}) {
      json settings = yarn;
      if (!truncate) settings["truncate"] = false;
      if (!scaling) settings["rope_theta"] = 900;
      const DecoderOptions config = parse({{scaling ? "rope_scaling" : "rope_parameters", settings},
                                           {"rope_theta", scaling ? json(900) : json("remove")}});
      const RopeOptions& rope = config.rotary.at(0);
      EXPECT_EQ(rope.type, RopeType::kYarn);
      EXPECT_EQ(rope.theta, 900);
      EXPECT_EQ(rope.factor, 8);
      EXPECT_EQ(rope.beta_fast, 16);
      EXPECT_EQ(rope.beta_slow, 2);
      EXPECT_EQ(rope.truncate, truncate);
      EXPECT_EQ(rope.original_max_position_embeddings, 64);
      EXPECT_DOUBLE_EQ(rope.attention_factor, 0.1 * std::log(8.0) + 1);
    }
  }
  yarn["attention_factor"] = 1.5;
  EXPECT_EQ(parse({{"rope_scaling", yarn}}).rotary.at(0).attention_factor, 1.5);
}

TEST(GptOssConfig, GivenValuesAreTaken) {
  const DecoderOptions config =
      parse({{"attention_bias", false},
             {"head_dim", 6},
             {"swiglu_alpha", 2.0},
             {"swiglu_limit", 3.0},
             {"sliding_window", 4},
             {"quantization_config", {{"quant_method", "mxfp4"}}},
             {"layer_types", {"full_attention", "sliding_attention", "sliding_attention"}}});
  EXPECT_FALSE(config.attention.qkv_bias || config.attention.output_bias);
  EXPECT_EQ(config.attention.heads.head_dim, 6);
  EXPECT_EQ(config.moe->experts.clamped_gate->alpha, 2.0);
  EXPECT_EQ(config.moe->experts.clamped_gate->limit, 3.0);
  EXPECT_EQ(windows_of(config), (Windows{0, 4, 4}));
}

TEST(GptOssConfig, MistakesAreNamed) {
  refused({{"output_router_logits", true}}, {"'output_router_logits'"});
  refused({{"sliding_window", nullptr}}, {"'sliding_window'", "layer 0"});
  refused({{"swiglu_limit", 0}}, {"'swiglu_limit'"});
  refused({{"quantization_config", {{"quant_method", "fp8"}}}},
          {"'quantization_config.quant_method'", "fp8", "mxfp4"});
  refused({{"quantization_config", json::object()}}, {"'quantization_config.quant_method'"});
  refused({{"rope_scaling", {{"rope_type", "yarn"}}}}, {"'rope_scaling.factor'"});
  refused({{"rope_scaling",
            {{"rope_type", "yarn"},
             {"factor", 2},
             {"beta_fast", 1},
             {"beta_slow", 1},
             {"original_max_position_embeddings", 64}}}},
          {"'rope_scaling.beta_slow'", "below"});
  refused({{"rope_scaling", {{"rope_type", "longrope"}}}}, {"'rope_scaling.rope_type'", "yarn"});
}

}  // namespace
}  // namespace shardproof
