#include "base/names.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(JoinName, AddsADotBetweenParts) {
  EXPECT_EQ(join_name("model", "layers.0"), "model.layers.0");
  EXPECT_EQ(join_name("", "layers"), "layers");
  EXPECT_EQ(join_name("model", ""), "model");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a..b", '.'), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", '.'), std::vector<std::string>{""});
}

TEST(PatternMatches, StarStandsForOneNumber) {
  EXPECT_TRUE(pattern_matches("layers.*.mlp", "layers.12.mlp"));
  EXPECT_FALSE(pattern_matches("layers.*.mlp", "layers.x.mlp"));
  EXPECT_FALSE(pattern_matches("layers.*.mlp", "layers..mlp"));
  EXPECT_FALSE(pattern_matches("layers.*", "layers.1.mlp"));
  EXPECT_FALSE(pattern_matches("mlp", "layers.1.mlp"));
}

TEST(PatternMatches, OtherPartsAreTakenLiterally) {
  EXPECT_TRUE(pattern_matches("lm_head", "lm_head"));
  EXPECT_FALSE(pattern_matches("lm_head", "lm_heads"));
}

TEST(NearestWord, FindsASlipAndNothingElse) {
  EXPECT_EQ(nearest_word("colwse", {"rowwise", "colwise"}), "colwise");
  EXPECT_EQ(nearest_word("tensor", {"rowwise", "colwise"}), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

}  // namespace
}  // namespace shardproof
