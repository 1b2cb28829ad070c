#include "models/qwen3/config.h"

#include <gtest/gtest.h>

#include "models/decoder/config_test_support.h"

namespace shardproof {
namespace {

using testing::expect_refused;
using testing::json;
using testing::parse_with;
using testing::windows_of;
using Windows = std::vector<int64_t>;

DecoderOptions parse(const json& changes) { return parse_with(parse_qwen3_config, changes); }

TEST(Qwen3Config, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse({{"rms_norm_eps", 1e-4}});
  EXPECT_EQ(config.attention.heads.head_dim, 128);
  EXPECT_EQ(config.rotary.at(0).dim, 128);
  EXPECT_FALSE(config.attention.qkv_bias || config.attention.output_bias || config.mlp.bias);
  ASSERT_TRUE(config.attention.head_norm.has_value());
  EXPECT_EQ(config.attention.head_norm->eps, 1e-4);
  EXPECT_EQ(windows_of(config), (Windows{0, 0, 0}));
}

TEST(Qwen3Config, GivenValuesAreTaken) {
  const DecoderOptions config = parse({{"head_dim", 8},
                                       {"attention_bias", true},
                                       {"use_sliding_window", true},
                                       {"sliding_window", 3},
                                       {"max_window_layers", 1}});
  EXPECT_EQ(config.rotary.at(0).dim, 8);
  EXPECT_TRUE(config.attention.qkv_bias && config.attention.output_bias);
  EXPECT_EQ(windows_of(config), (Windows{0, 3, 3}));
}

TEST(Qwen3Config, MistakesAreNamed) {
  expect_refused(parse_qwen3_config, {{"head_dim", 7}}, {"'head_dim'", "even"});
  expect_refused(parse_qwen3_config, {{"attention_bias", "yes"}}, {"'attention_bias'"});
  expect_refused(parse_qwen3_config, {{"rope_scaling", {{"rope_type", "dynamic"}}}},
                 {"'rope_scaling.rope_type'", "dynamic"});
}

}  // namespace
}  // namespace shardproof
