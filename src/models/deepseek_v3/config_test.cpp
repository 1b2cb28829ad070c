#include "models/deepseek_v3/config.h"

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

DecoderOptions parse(const json& changes) { return parse_with(parse_deepseek_v3_config, changes); }

void refused(const json& changes, const std::vector<std::string>& parts) {
  expect_refused(parse_deepseek_v3_config, changes, parts);
}

std::vector<bool> sparse_of(const DecoderOptions& options) {
  std::vector<bool> sparse;
  for (const DecoderLayerOptions& layer : options.layers) sparse.push_back(layer.sparse);
  return sparse;
}

TEST(DeepseekV3Config, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse({{"num_hidden_layers", 5}});
  const LatentAttentionOptions& attention = config.latent_attention.value();
  EXPECT_EQ(attention.heads, 6);
  EXPECT_EQ(attention.query_rank, 1536);
  EXPECT_EQ(attention.key_rank, 512);
  EXPECT_EQ(attention.plain_dim, 128);
  EXPECT_EQ(attention.rope_dim, 64);
  EXPECT_EQ(attention.value_dim, 128);
  EXPECT_TRUE(attention.neighbours);
  EXPECT_FALSE(attention.bias);
  EXPECT_DOUBLE_EQ(attention.scale.value(), 1 / std::sqrt(192.0));
  EXPECT_EQ(sparse_of(config), (std::vector<bool>{false, false, false, true, true}));
  const MoeOptions& moe = config.moe.value();
  EXPECT_EQ(moe.router.scoring, RouterOptions::Scoring::kSigmoid);
  EXPECT_EQ(moe.router.experts, 256);
  EXPECT_EQ(moe.router.top_k, 8);
  EXPECT_EQ(moe.router.groups, 8);
  EXPECT_EQ(moe.router.top_groups, 4);
  EXPECT_EQ(moe.router.scale, 2.5);
  EXPECT_TRUE(moe.router.normalize && moe.router.wide_logits);
  EXPECT_EQ(moe.experts.width, 2048);
  EXPECT_EQ(moe.shared->width, 2048);
}

TEST(DeepseekV3Config, YarnScalesTheScores) {
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 40},
                     {"mscale", 1.0},
                     {"mscale_all_dim", 0.5},
                     {"original_max_position_embeddings", 4096}};
  const DecoderOptions config =
      parse({{"rope_scaling", yarn}, {"qk_nope_head_dim", 6}, {"qk_rope_head_dim", 8}});
  EXPECT_DOUBLE_EQ(config.latent_attention->scale.value(), 0.37494280728050333);  // transformers'
  EXPECT_DOUBLE_EQ(config.rotary.at(0).attention_factor, 1.1557219901962608);
  EXPECT_EQ(config.rotary.at(0).dim, 8);
}

TEST(DeepseekV3Config, GivenValuesAreTaken) {
  const DecoderOptions config = parse({{"q_lora_rank", nullptr},
                                       {"rope_interleave", false},
                                       {"attention_bias", true},
                                       {"n_shared_experts", 2},
                                       {"moe_intermediate_size", 7},
                                       {"first_k_dense_replace", 1}});
  EXPECT_FALSE(config.latent_attention->query_rank.has_value());
  EXPECT_FALSE(config.latent_attention->neighbours);
  EXPECT_TRUE(config.latent_attention->bias);
  EXPECT_EQ(config.moe->shared->width, 14);
  EXPECT_EQ(sparse_of(config), (std::vector<bool>{false, true, true}));
}

TEST(DeepseekV3Config, MistakesAreNamed) {
  refused({{"n_group", 3}}, {"'n_group'", "256"});
  refused({{"topk_group", 9}}, {"'topk_group'"});
  refused({{"n_routed_experts", 8}, {"n_group", 4}, {"topk_group", 3}}, {"'topk_group'", "8"});
  refused({{"qk_rope_head_dim", 7}}, {"even"});
  refused({{"first_k_dense_replace", -1}}, {"'first_k_dense_replace'"});
  refused({{"output_router_logits", true}}, {"'output_router_logits'"});
}

}  // namespace
}  // namespace shardproof
