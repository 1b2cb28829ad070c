#include "models/qwen2/config.h"

#include <gtest/gtest.h>

#include "models/decoder/config_test_support.h"

namespace shardproof {
namespace {

using testing::expect_refused;
using testing::json;
using testing::parse_with;
using testing::windows_of;
using Windows = std::vector<int64_t>;

DecoderOptions parse(const json& changes) { return parse_with(parse_qwen2_config, changes); }

TEST(Qwen2Config, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse(json::object());
  EXPECT_TRUE(config.attention.qkv_bias);
  EXPECT_FALSE(config.attention.output_bias || config.mlp.bias || config.tied);
  EXPECT_EQ(config.attention.heads.head_dim, 4);
  EXPECT_FALSE(config.attention.head_norm.has_value());
  EXPECT_EQ(windows_of(config), (Windows{0, 0, 0}));
  EXPECT_EQ(
      parse({{"num_key_value_heads", "remove"}, {"num_attention_heads", 64}, {"hidden_size", 128}})
          .attention.heads.keys,
      32);
}

TEST(Qwen2Config, WindowsByLayerTypesOrFromALayerOn) {
  EXPECT_EQ(windows_of(parse({{"use_sliding_window", true}, {"max_window_layers", 2}})),
            (Windows{0, 0, 4096}));
  EXPECT_EQ(windows_of(parse(
                {{"use_sliding_window", true}, {"sliding_window", 7}, {"max_window_layers", 0}})),
            (Windows{7, 7, 7}));
  EXPECT_EQ(windows_of(parse({{"use_sliding_window", true}})), (Windows{0, 0, 0}))
      << "from layer 28 on";
  EXPECT_EQ(windows_of(parse({{"sliding_window", 7}, {"max_window_layers", 0}})),
            (Windows{0, 0, 0}))
      << "not used";
  const json types = {"full_attention", "sliding_attention", "full_attention"};
  EXPECT_EQ(windows_of(parse({{"use_sliding_window", true},
                              {"sliding_window", 7},
                              {"max_window_layers", 0},
                              {"layer_types", types}})),
            (Windows{0, 7, 0}));
}

TEST(Qwen2Config, MistakesAreNamed) {
  const auto refused = [](const json& changes, const std::vector<std::string>& parts) {
    expect_refused(parse_qwen2_config, changes, parts);
  };
  const json types = {"full_attention", "sliding_attention", "full_attention"};
  refused({{"layer_types", types}}, {"'layer_types'", "layer 1", "use_sliding_window"});
  refused({{"layer_types", {"full_attention", "conv", "full_attention"}}},
          {"'layer_types'", "conv"});
  refused({{"layer_types", "full_attention"}}, {"'layer_types'", "list of texts"});
  refused({{"max_window_layers", -1}}, {"'max_window_layers'"});
  refused({{"use_sliding_window", 1}}, {"'use_sliding_window'", "true or false"});
}

}  // namespace
}  // namespace shardproof
