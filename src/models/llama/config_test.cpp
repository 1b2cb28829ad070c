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

LlamaConfig parse(const json& changes) {
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
  const LlamaConfig config = parse(json::object());
  EXPECT_EQ(config.num_key_value_heads, 6);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.rope.dim, 4);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.type, RopeType::kDefault);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_FALSE(config.attention_bias || config.mlp_bias || config.tie_word_embeddings);
  EXPECT_FALSE(config.pad_token_id.has_value());
}

TEST(LlamaConfig, GivenValuesAreTaken) {
  const LlamaConfig config = parse({{"num_key_value_heads", 2},
                                    {"head_dim", 10},
                                    {"attention_bias", true},
                                    {"mlp_bias", true},
                                    {"tie_word_embeddings", true},
                                    {"pad_token_id", -1}});
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.rope.dim, 10);
  EXPECT_TRUE(config.attention_bias && config.mlp_bias && config.tie_word_embeddings);
  EXPECT_EQ(config.pad_token_id, 10);
}

TEST(LlamaConfig, BothSpellingsOfTheRotarySettings) {
  const json scaling = {{"rope_theta", 500.0},
                        {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}};
  const json parameters = {
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500}}}};
  for (const json& spelling : {scaling, parameters}) {
    const RopeOptions rope = parse(spelling).rope;
    EXPECT_EQ(rope.type, RopeType::kLinear);
    EXPECT_EQ(rope.factor, 4.0);
    EXPECT_EQ(rope.theta, 500.0);
  }
  EXPECT_EQ(parse({{"rope_theta", 500.0}, {"rope_scaling", nullptr}}).rope.theta, 500.0);
  EXPECT_EQ(
      parse({{"rope_theta", 7.0}, {"rope_parameters", {{"rope_type", "default"}}}}).rope.theta,
      7.0);
}

TEST(LlamaConfig, Llama3TakesTheLengthOfTheModelWhereNoneIsGiven) {
  json scaling = {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0}};
  EXPECT_EQ(parse({{"rope_scaling", scaling}, {"max_position_embeddings", 64}})
                .rope.original_max_position_embeddings,
            64);
  scaling["original_max_position_embeddings"] = 16;
  EXPECT_EQ(parse({{"rope_scaling", scaling}, {"max_position_embeddings", 64}})
                .rope.original_max_position_embeddings,
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
  expect_refused({{"rope_scaling", {{"rope_type", "yarn"}}}}, {"'rope_scaling.rope_type'", "yarn"});
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
