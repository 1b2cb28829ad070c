#include "models/phi3/config.h"

#include <gtest/gtest.h>

#include "models/decoder/config_test_support.h"

namespace shardproof {
namespace {

using testing::expect_refused;
using testing::json;
using testing::parse_with;
using testing::windows_of;
using Windows = std::vector<int64_t>;

DecoderOptions parse(const json& changes) { return parse_with(parse_phi3_config, changes); }

TEST(Phi3Config, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse({{"num_key_value_heads", "remove"}});
  EXPECT_EQ(config.attention.projections, AttentionOptions::Projections::kPacked);
  EXPECT_EQ(config.mlp_projections, DecoderOptions::MlpProjections::kPacked);
  EXPECT_EQ(config.attention.heads.keys, 6);
  EXPECT_EQ(config.norm.eps, 1e-5);
  EXPECT_EQ(config.rotary.at(0).dim, 4);
  EXPECT_EQ(windows_of(config), (Windows{0, 0, 0}));
  EXPECT_FALSE(config.padding_row.has_value()) << "null";
  EXPECT_EQ(parse({{"pad_token_id", "remove"}, {"vocab_size", 32064}}).padding_row, 32000);
}

TEST(Phi3Config, HeadsMayBeTurnedInPart) {
  const json at_top = {{"head_dim", 8}, {"partial_rotary_factor", 0.75}};
  const json inside = {{"head_dim", 8}, {"rope_parameters", {{"partial_rotary_factor", 0.75}}}};
  for (const json& spelling : {at_top, inside}) {
    EXPECT_EQ(parse(spelling).rotary.at(0).dim, 6);
    EXPECT_EQ(parse(spelling).attention.heads.head_dim, 8);
  }
}

TEST(Phi3Config, MistakesAreNamed) {
  const auto refused = [](const json& changes, const std::vector<std::string>& parts) {
    expect_refused(parse_phi3_config, changes, parts);
  };
  for (const char* type : {"longrope", "linear", "su"})
    refused({{"rope_scaling", {{"type", type}}}}, {"'rope_scaling.type'", type, "default"});
  refused({{"head_dim", 8}, {"partial_rotary_factor", 0.4}}, {"'partial_rotary_factor'", "even"});
  refused({{"partial_rotary_factor", 1.5}}, {"'partial_rotary_factor'"});
  refused({{"pad_token_id", "remove"}},
          {"'pad_token_id' is 32000 where it is not given", "11 tokens"});
}

}  // namespace
}  // namespace shardproof
