#include "models/mistral/config.h"

#include <gtest/gtest.h>

#include "models/decoder/config_test_support.h"

namespace shardproof {
namespace {

using testing::expect_refused;
using testing::json;
using testing::parse_with;
using testing::windows_of;
using Windows = std::vector<int64_t>;

DecoderOptions parse(const json& changes) { return parse_with(parse_mistral_config, changes); }

TEST(MistralConfig, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config =
      parse({{"num_key_value_heads", "remove"}, {"num_attention_heads", 16}, {"hidden_size", 64}});
  EXPECT_EQ(config.attention.heads.keys, 8);
  EXPECT_EQ(config.attention.heads.head_dim, 4);
  EXPECT_EQ(config.norm.eps, 1e-6);
  EXPECT_EQ(config.rotary.at(0).theta, 10000.0);
  EXPECT_EQ(windows_of(config), (Windows{4096, 4096, 4096}));
  EXPECT_FALSE(config.attention.qkv_bias || config.attention.output_bias || config.mlp.bias);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(parse({{"num_key_value_heads", nullptr}}).attention.heads.keys, 6);
}

TEST(MistralConfig, NullIsNoWindow) {
  EXPECT_EQ(windows_of(parse({{"sliding_window", nullptr}})), (Windows{0, 0, 0}));
  EXPECT_EQ(windows_of(parse({{"sliding_window", 5}})), (Windows{5, 5, 5}));
}

TEST(MistralConfig, MistakesAreNamed) {
  const auto refused = [](const json& changes, const std::vector<std::string>& parts) {
    expect_refused(parse_mistral_config, changes, parts);
  };
  refused({{"sliding_window", 0}}, {"'sliding_window'", "at least 1"});
  refused({{"sliding_window", "5"}}, {"'sliding_window'", "integer"});
  // transformers does not read them for a Mistral: they must not say otherwise.
  const json types = {"sliding_attention", "full_attention", "sliding_attention"};
  refused({{"sliding_window", 5}, {"layer_types", types}}, {"'layer_types'", "layer 1"});
  refused({{"layer_types", {"full_attention"}}}, {"'layer_types'", "1 entries"});
  refused({{"num_key_value_heads", "remove"}}, {"'num_key_value_heads' (8)", "(6)"});
}

}  // namespace
}  // namespace shardproof
