#include "models/qwen3_moe/config.h"

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

DecoderOptions parse(const json& changes) { return parse_with(parse_qwen3_moe_config, changes); }

void refused(const json& changes, const std::vector<std::string>& parts) {
  expect_refused(parse_qwen3_moe_config, changes, parts);
}

std::vector<bool> sparse_of(const DecoderOptions& options) {
  std::vector<bool> sparse;
  for (const DecoderLayerOptions& layer : options.layers) sparse.push_back(layer.sparse);
  return sparse;
}

TEST(Qwen3MoeConfig, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config =
      parse({{"num_attention_heads", 4}, {"num_key_value_heads", "remove"}});
  EXPECT_EQ(config.attention.heads.keys, 4);
  EXPECT_EQ(config.attention.heads.head_dim, 6);
  EXPECT_TRUE(config.attention.head_norm.has_value());
  EXPECT_FALSE(config.attention.qkv_bias);
  EXPECT_EQ(sparse_of(config), std::vector<bool>(3, true));
  EXPECT_EQ(windows_of(config), (Windows{0, 0, 0}));
  const MoeOptions& moe = config.moe.value();
  EXPECT_EQ(moe.router.experts, 128);
  EXPECT_EQ(moe.router.top_k, 8);
  EXPECT_FALSE(moe.router.normalize);
  EXPECT_EQ(moe.router.weights, RouterOptions::Type::kLogits);
  EXPECT_EQ(moe.experts.width, 768);
  EXPECT_EQ(config.mlp.width, 13);
}

TEST(Qwen3MoeConfig, LayersBetweenMayBeDense) {
  EXPECT_EQ(sparse_of(parse({{"mlp_only_layers", {0}}})), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(sparse_of(parse({{"decoder_sparse_step", 2}})),
            (std::vector<bool>{false, true, false}));
  EXPECT_EQ(sparse_of(parse({{"mlp_only_layers", {1}}, {"decoder_sparse_step", 2}})),
            std::vector<bool>(3, false));
}

TEST(Qwen3MoeConfig, GivenValuesAreTaken) {
  const DecoderOptions config = parse({{"norm_topk_prob", true},
                                       {"num_experts", 5},
                                       {"num_experts_per_tok", 2},
                                       {"moe_intermediate_size", 7},
                                       {"use_sliding_window", true},
                                       {"sliding_window", 3}});
  EXPECT_TRUE(config.moe->router.normalize);
  EXPECT_EQ(config.moe->router.experts, 5);
  EXPECT_EQ(config.moe->experts.width, 7);
  EXPECT_EQ(windows_of(config), (Windows{3, 3, 3}));
}

TEST(Qwen3MoeConfig, MistakesAreNamed) {
  refused({{"output_router_logits", true}}, {"'output_router_logits'"});
  refused({{"decoder_sparse_step", 0}}, {"'decoder_sparse_step'"});
  refused({{"num_experts", 4}}, {"'num_experts_per_tok'", "num_experts (4)"});
}

}  // namespace
}  // namespace shardproof
