#include "models/family.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/names.h"
#include "base/test_errors.h"

namespace shardproof {
namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 5,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "attention_bias": true, "tie_word_embeddings": true, "pad_token_id": null,
        "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "n_group": 2,
        "topk_group": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 3,
        "mlp_only_layers": [1], "first_k_dense_replace": 1})";

ModelFamily llama_again() { return shipped_families().find("llama"); }

CausalLM build() { return shipped_families().find("llama").build(kConfig, "config.json"); }

TEST(Families, UnknownOnesAreRefusedWithTheKnown) {
  const FamilyRegistry families = shipped_families();
  EXPECT_EQ(families.names(),
            (std::vector<std::string>{"llama", "mistral", "qwen2", "qwen3", "phi3", "gemma3_text",
                                      "mixtral", "gpt_oss", "qwen3_moe", "deepseek_v3"}));
  const std::string message = error_of([&] { families.find("lama"); });
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
      error_of([&] { build_from_directory(families, directory.string()); }).find("config.json"),
      std::string::npos);
  write(R"({"model_type": "gpt2"})");
  const std::string message = error_of([&] { build_from_directory(families, directory.string()); });
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

TEST(Families, EveryRuleOfTheirPlansNamesAModuleOrAParameter) {
  const FamilyRegistry families = shipped_families();
  for (const std::string& name : families.names()) {
    const ModelFamily& family = families.find(name);
    const CausalLM causal_lm = family.build(kConfig, "config.json");
    std::vector<std::string> paths;
    for (Module* module : causal_lm.model->modules()) {
      paths.push_back(module->path());
      for (const auto& [local, parameter] : module->parameters())
        paths.push_back(join_name(module->path(), local));
    }
    const auto dense = std::count_if(paths.begin(), paths.end(), [](const auto& path) {
      return pattern_matches("model.layers.*.mlp.gate_proj", path);
    });
    const auto& [tp, fsdp, sp, ep] = family.plans;
    EXPECT_FALSE(tp.empty() || fsdp.empty() || sp.empty()) << name;
    for (const Plan& plan : {tp, fsdp, sp, ep}) {
      for (const PlanRule& rule : plan) {
        const auto matches = std::count_if(paths.begin(), paths.end(), [&](const auto& path) {
          return pattern_matches(rule.pattern, path);
        });
        // Latent attention has q_a_proj and q_b_proj, or q_proj.
        if (matches == 0 && name == "deepseek_v3" && rule.pattern.ends_with(".q_proj")) continue;
        const bool one_a_layer = rule.pattern.find('*') != std::string::npos;
        const bool some = dense == 1 && rule.pattern.find(".mlp.") != std::string::npos;
        EXPECT_EQ(matches, some ? 1 : one_a_layer ? 2 : 1) << name << ": " << rule.pattern;
      }
    }
  }
}

// A plan that leaves a matrix out would hold it whole on every rank.
TEST(Families, TensorParallelTouchesEveryMatrixAndEmbedding) {
  const FamilyRegistry families = shipped_families();
  for (const std::string& name : families.names()) {
    const ModelFamily& family = families.find(name);
    const CausalLM causal_lm = family.build(kConfig, "config.json");
    const auto touched = [&](const std::string& path) {
      return std::any_of(family.plans.tp.begin(), family.plans.tp.end(),
                         [&](const PlanRule& rule) { return pattern_matches(rule.pattern, path); });
    };
    for (Module* module : causal_lm.model->modules()) {
      const std::string& path = module->path();
      if (module->type() == "Experts") {
        for (const auto& [local, parameter] : module->parameters())
          EXPECT_TRUE(touched(join_name(path, local))) << name << ": " << path << "." << local;
      }
      if (module->type() != "Linear" && module->type() != "Embedding") continue;
      // Of latent attention, whole on every rank: it is small, and what it gives all heads read.
      if (path.ends_with(".q_a_proj")) continue;
      EXPECT_TRUE(touched(path)) << name << ": " << path;
    }
  }
}

// The links name ports that are there, and lead from the inputs of a container to its outputs.
TEST(Families, LinksNamePortsThatAreThere) {
  const FamilyRegistry families = shipped_families();
  for (const std::string& name : families.names()) {
    const CausalLM causal_lm = families.find(name).build(kConfig, "config.json");
    for (Module* module : causal_lm.model->modules()) {
      const auto ports = [&](const std::string& child, bool inputs) {
        std::vector<std::string> names;
        for (const auto& [child_name, found] : module->children()) {
          if (child_name != child) continue;
          for (const Port& port : inputs ? found->signature().inputs : found->signature().outputs)
            names.push_back(port.name);
        }
        if (child.empty())
          for (const Port& port : inputs ? module->signature().outputs : module->signature().inputs)
            names.push_back(port.name);
        return names;
      };
      const auto expect_port = [&](const LinkEnd& end, bool input) {
        const auto known = ports(end.child, input);
        EXPECT_EQ(std::count(known.begin(), known.end(), end.port), 1)
            << name << ": " << module->label() << ": " << end.child << "." << end.port;
      };
      const std::vector<Link> links = module->links();
      EXPECT_EQ(links.empty(), module->children().empty()) << name << ": " << module->label();
      for (const Link& link : links) {
        expect_port(link.from, false);
        const auto inputs = ports(link.to.child, true);
        const bool goes_in = std::count(inputs.begin(), inputs.end(), link.to.port) > 0;
        expect_port(link.to, !(link.together || link.to_heads) || goes_in);
      }
      // Every child with parameters is reached.
      for (const auto& [child, found] : module->children()) {
        if (found->all_parameters().empty()) continue;
        EXPECT_TRUE(std::any_of(links.begin(), links.end(),
                                [&](const Link& link) { return link.to.child == child; }))
            << name << ": " << module->label() << " has no link to " << child;
      }
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
