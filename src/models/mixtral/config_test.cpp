#include "models/mixtral/config.h"

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

DecoderOptions parse(const json& changes) { return parse_with(parse_mixtral_config, changes); }

void refused(const json& changes, const std::vector<std::string>& parts) {
  expect_refused(parse_mixtral_config, changes, parts);
}

std::vector<bool> sparse_of(const DecoderOptions& options) {
  std::vector<bool> sparse;
  for (const DecoderLayerOptions& layer : options.layers) sparse.push_back(layer.sparse);
  return sparse;
}

TEST(MixtralConfig, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config =
      parse({{"hidden_size", 32}, {"num_attention_heads", 8}, {"num_key_value_heads", "remove"}});
  EXPECT_EQ(config.attention.heads.keys, 8);
  EXPECT_EQ(config.rotary.at(0).theta, 1e6);
  EXPECT_EQ(config.norm.eps, 1e-5);
  EXPECT_EQ(sparse_of(config), std::vector<bool>(3, true));
  EXPECT_EQ(windows_of(config), (Windows{0, 0, 0}));
  const MoeOptions& moe = config.moe.value();
  EXPECT_EQ(moe.router_name, "gate");
  EXPECT_EQ(moe.router.experts, 8);
  EXPECT_EQ(moe.router.top_k, 2);
  EXPECT_TRUE(moe.router.normalize);
  EXPECT_EQ(moe.router.scoring, RouterOptions::Scoring::kSoftmax);
  EXPECT_EQ(moe.router.weights, RouterOptions::Type::kWide);
  EXPECT_EQ(moe.experts.width, 13);
  EXPECT_FALSE(moe.experts.bias || moe.experts.clamped_gate || moe.shared);
}

TEST(MixtralConfig, GivenValuesAreTaken) {
  const DecoderOptions config =
      parse({{"num_local_experts", 5}, {"num_experts_per_tok", 3}, {"sliding_window", 4}});
  EXPECT_EQ(config.moe->router.experts, 5);
  EXPECT_EQ(config.moe->router.top_k, 3);
  EXPECT_EQ(windows_of(config), (Windows{4, 4, 4}));
}

TEST(MixtralConfig, MistakesAreNamed) {
  refused({{"output_router_logits", true}}, {"'output_router_logits'", "not supported yet"});
  refused({{"router_jitter_noise", 0.1}}, {"'router_jitter_noise'"});
  refused({{"num_experts_per_tok", 9}}, {"'num_experts_per_tok'", "9", "num_local_experts (8)"});
  refused({{"num_local_experts", 0}}, {"'num_local_experts'"});
}

}  // namespace
}  // namespace shardproof
