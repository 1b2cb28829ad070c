#include "models/family.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/names.h"

namespace shardproof {
namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 5,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "attention_bias": true, "tie_word_embeddings": true})";

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

ModelFamily llama_again() { return shipped_families().find("llama"); }

CausalLM build() { return shipped_families().find("llama").build(kConfig, "config.json"); }

TEST(Families, UnknownOnesAreRefusedWithTheKnown) {
  const FamilyRegistry families = shipped_families();
  EXPECT_EQ(families.names(), std::vector<std::string>{"llama"});
  const std::string message = message_of([&] { families.find("lama"); });
  EXPECT_NE(message.find("did you mean 'llama'"), message.npos) << message;
  FamilyRegistry twice = shipped_families();
  EXPECT_THROW(twice.add(llama_again()), ContractError);
}

TEST(Families, BuildFromADirectory) {
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("shardproof_family_{}", getpid());
  std::filesystem::create_directory(directory);
  const auto write = [&](const std::string& text) {
    std::ofstream(directory / "config.json") << text;
  };
  const FamilyRegistry families = shipped_families();
  EXPECT_NE(
      message_of([&] { build_from_directory(families, directory.string()); }).find("config.json"),
      std::string::npos);
  write(R"({"model_type": "gpt2"})");
  const std::string message =
      message_of([&] { build_from_directory(families, directory.string()); });
  EXPECT_NE(message.find("config.json: key 'model_type'"), message.npos) << message;
  EXPECT_NE(message.find("gpt2"), message.npos) << message;
  write(kConfig);

  const LoadedModel loaded = build_from_directory(families, directory.string());

  std::filesystem::remove_all(directory);
  EXPECT_EQ(loaded.family->name, "llama");
  EXPECT_EQ(loaded.causal_lm.vocab_size, 11);
  EXPECT_EQ(loaded.causal_lm.layers, 2);
  EXPECT_TRUE(loaded.causal_lm.tied);
}

TEST(Llama, PathsAreThoseOfTransformers) {
  const CausalLM llama = build();
  std::vector<std::string> names;
  for (const ParamPtr& parameter : llama.model->all_parameters())
    names.push_back(parameter->name());
  ASSERT_EQ(names.size(), 1 + 2 * (2 + 8 + 3) + 1);
  EXPECT_EQ(names[0], "model.embed_tokens.weight");
  EXPECT_EQ(names[1], "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(names[3], "model.layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(names[11], "model.layers.0.mlp.gate_proj.weight");
  EXPECT_EQ(names.back(), "model.norm.weight");
  EXPECT_EQ(llama.model->all_parameters()[0]->names(),
            (std::vector<std::string>{"model.embed_tokens.weight", "lm_head.weight"}));
}

TEST(Llama, EveryRuleOfItsPlansNamesAModule) {
  const CausalLM llama = build();
  const ModelPlans plans = shipped_families().find("llama").plans;
  for (const Plan& plan : {plans.tp, plans.fsdp}) {
    EXPECT_FALSE(plan.empty());
    for (const PlanRule& rule : plan) {
      int matches = 0;
      for (Module* module : llama.model->modules())
        matches += pattern_matches(rule.pattern, module->path());
      const bool one_a_layer = rule.pattern.find('*') != std::string::npos;
      EXPECT_EQ(matches, one_a_layer ? 2 : 1) << rule.pattern;
    }
  }
}

TEST(Llama, PositionsCountFromZeroWhereNoneAreGiven) {
  const CausalLM llama = build();
  for (const ParamPtr& parameter : llama.model->all_parameters()) {
    parameter->place_whole(at::kDouble);
    parameter->kept().copy_(
        at::sin(at::arange(parameter->kept().numel(), at::kDouble)).view(parameter->shape()));
  }
  const at::Tensor ids = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3});
  const auto logits = [&](const at::Tensor& positions) {
    return Module::only(llama.model->call({ids}, {{"position_ids", positions}})).detach();
  };
  const at::Tensor truth = logits({});
  EXPECT_EQ(truth.sizes().vec(), (std::vector<int64_t>{2, 3, 11}));
  EXPECT_TRUE(at::equal(truth, logits(at::arange(3, at::kLong).unsqueeze(0))));
  // Turning all by the same angle changes nothing; other distances do.
  EXPECT_TRUE(at::allclose(truth, logits(at::arange(3, at::kLong).unsqueeze(0) + 7), 1e-10, 1e-10));
  EXPECT_FALSE(at::allclose(truth, logits(at::arange(3, at::kLong).unsqueeze(0) * 2), 1e-6, 1e-6));
}

}  // namespace
}  // namespace shardproof
