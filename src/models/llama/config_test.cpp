#include "models/llama/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace shardproof {
namespace {

using nlohmann::json;

json minimal() {
  return {{"vocab_size", 11},       {"hidden_size", 24},        {"intermediate_size", 13},
          {"num_hidden_layers", 2}, {"num_attention_heads", 6}, {"rms_norm_eps", 1e-5}};
}

DecoderOptions parse(const json& changes) {
  json config = minimal();
  config.update(changes);
  return parse_llama_config(config.dump(), "x/config.json");
}

void expect_refused(const json& changes, const std::vector<std::string>& parts) {
  try {
    parse(changes);
    FAIL() << "accepted: " << changes;
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("x/config.json"), message.npos) << message;
    for (const auto& part : parts) EXPECT_NE(message.find(part), message.npos) << message;
  }
}

TEST(LlamaConfig, DefaultsAreThoseOfTransformers) {
  const DecoderOptions config = parse(json::object());
  EXPECT_EQ(config.attention.heads.keys, 6);
  EXPECT_EQ(config.attention.heads.head_dim, 4);
  EXPECT_EQ(config.rotary.at(0).dim, 4);
  EXPECT_EQ(config.rotary[0].theta, 10000.0);
  EXPECT_EQ(config.rotary[0].type, RopeType::kDefault);
  EXPECT_EQ(config.norm.eps, 1e-5);
  EXPECT_FALSE(config.attention.qkv_bias || config.attention.output_bias || config.mlp.bias);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.layers.size(), 2u);
  EXPECT_FALSE(config.layers[1].window.has_value());
  EXPECT_FALSE(config.padding_row.has_value());
}

TEST(LlamaConfig, GivenValuesAreTaken) {
  const DecoderOptions config = parse({{"num_key_value_heads", 2},
                                       {"head_dim", 10},
                                       {"attention_bias", true},
                                       {"mlp_bias", true},
                                       {"tie_word_embeddings", true},
                                       {"pad_token_id", -1}});
  EXPECT_EQ(config.attention.heads.keys, 2);
  EXPECT_EQ(config.rotary.at(0).dim, 10);
  EXPECT_TRUE(config.attention.qkv_bias && config.attention.output_bias && config.mlp.bias);
  EXPECT_TRUE(config.tied);
  EXPECT_EQ(config.padding_row, 10);
}

TEST(LlamaConfig, BothSpellingsOfTheRotarySettings) {
  const json scaling = {{"rope_theta", 500.0},
                        {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}};
  const json parameters = {
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500}}}};
  for (const json& spelling : {scaling, parameters}) {
    const RopeOptions rope = parse(spelling).rotary.at(0);
    EXPECT_EQ(rope.type, RopeType::kLinear);
    EXPECT_EQ(rope.factor, 4.0);
    EXPECT_EQ(rope.theta, 500.0);
  }
  EXPECT_EQ(parse({{"rope_theta", 500.0}, {"rope_scaling", nullptr}}).rotary[0].theta, 500.0);
  EXPECT_EQ(
      parse({{"rope_theta", 7.0}, {"rope_parameters", {{"rope_type", "default"}}}}).rotary[0].theta,
      7.0);
}

TEST(LlamaConfig, Llama3TakesTheLengthOfTheModelWhereNoneIsGiven) {
  json scaling = {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0}};
  EXPECT_EQ(parse({{"rope_scaling", scaling}, {"max_position_embeddings", 64}})
                .rotary[0]
                .original_max_position_embeddings,
            64);
  scaling["original_max_position_embeddings"] = 16;
  EXPECT_EQ(parse({{"rope_scaling", scaling}, {"max_position_embeddings", 64}})
                .rotary[0]
                .original_max_position_embeddings,
            16);
}

TEST(LlamaConfig, MistakesAreNamed) {
  expect_refused({{"vocab_size", nullptr}}, {"'vocab_size'", "missing"});
  expect_refused({{"hidden_size", "24"}}, {"'hidden_size'", "integer"});
  expect_refused({{"hidden_size", 24.0}}, {"'hidden_size'", "integer"});
  expect_refused({{"num_hidden_layers", 0}}, {"'num_hidden_layers'"});
  expect_refused({{"num_hidden_layers", uint64_t{1} << 63}}, {"'num_hidden_layers'"});
  expect_refused({{"num_key_value_heads", 4}}, {"'num_key_value_heads' (4)", "(6)"});
  expect_refused({{"num_attention_heads", 5}}, {"'num_attention_heads' (5)"});
  expect_refused({{"head_dim", 5}}, {"'head_dim'", "even"});
  expect_refused({{"hidden_act", "gelu"}}, {"'hidden_act'", "gelu"});
  expect_refused({{"rms_norm_eps", -1}}, {"'rms_norm_eps'"});
  expect_refused({{"mlp_bias", 1}}, {"'mlp_bias'", "true or false"});
  expect_refused({{"pad_token_id", 11}}, {"'pad_token_id'"});
  expect_refused({{"rope_scaling", "linear"}}, {"'rope_scaling'", "object"});
  expect_refused({{"rope_scaling", {{"rope_type", "dynamic"}}}},
                 {"'rope_scaling.rope_type'", "dynamic"});
  expect_refused({{"rope_parameters", {{"rope_type", "linear"}}}},
                 {"'rope_parameters.factor'", "missing"});
  expect_refused(
      {{"rope_parameters",
        {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 1}}}},
      {"'rope_parameters.high_freq_factor'"});
  EXPECT_THROW(parse_llama_config("{", "x"), InputError);
  EXPECT_THROW(parse_llama_config("[1]", "x"), InputError);
}

}  // namespace
}  // namespace shardproof
