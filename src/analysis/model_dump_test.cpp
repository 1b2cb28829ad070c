#include "analysis/model_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/check_plan.h"
#include "analysis/coverage.h"
#include "analysis/state.h"
#include "base/error.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

// Two layers with 4 query and 2 key/value heads of 3, 2 experts in one packed parameter, tied head.
std::string dump_text() {
  std::string modules, parameters;
  const auto module = [&](const std::string& path, const std::string& type,
                          const std::string& kind) {
    modules += fmt::format(R"({}{{"path": "{}", "class": "{}", "kind": "{}"}})",
                           modules.empty() ? "" : ",", path, type, kind);
  };
  const auto parameter = [&](const std::string& name, const std::string& shape) {
    parameters += fmt::format(R"({}{{"name": "{}", "shape": {}, "dtype": "bfloat16"}})",
                              parameters.empty() ? "" : ",", name, shape);
  };
  module("", "ToyForCausalLM", "");
  module("model.embed_tokens", "Embedding", "Embedding");
  parameter("model.embed_tokens.weight", "[50, 10]");
  for (const char* layer : {"0", "1"}) {
    const std::string path = fmt::format("model.layers.{}.", layer);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      module(path + "self_attn." + name, "Linear", "Linear");
    parameter(path + "self_attn.q_proj.weight", "[12, 10]");
    parameter(path + "self_attn.k_proj.weight", "[6, 10]");
    parameter(path + "self_attn.v_proj.weight", "[6, 10]");
    parameter(path + "self_attn.o_proj.weight", "[10, 12]");
    module(path + "mlp.experts", "ToyExperts", "");
    parameter(path + "mlp.experts.gate_up_proj", "[2, 14, 10]");
    parameter(path + "mlp.experts.down_proj", "[2, 10, 7]");
    module(path + "norm", "ToyNorm", "");
    parameter(path + "norm.weight", "[10]");
  }
  module("lm_head", "Linear", "Linear");
  parameter("lm_head.weight", "[50, 10]");
  return fmt::format(
      R"({{"shardproof_dump": 1, "model": "ToyForCausalLM", "model_type": "toy", "dtype": "bfloat16",
 "config": {{"hidden_size": 10, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 3}},
 "modules": [{}], "parameters": [{}], "tied": [["model.embed_tokens.weight", "lm_head.weight"]],
 "plans": {{"tp": {{"model.embed_tokens": "embedding_rowwise", "lm_head": "colwise_gather_output",
   "model.layers.*.self_attn.q_proj": "colwise", "model.layers.*.self_attn.k_proj": "colwise",
   "model.layers.*.self_attn.v_proj": "colwise", "model.layers.*.self_attn.o_proj": "rowwise",
   "model.layers.*.mlp.experts.gate_up_proj": "packed_colwise",
   "model.layers.*.mlp.experts.down_proj": "rowwise",
   "model.layers.*.mlp.experts": "moe_tp_experts", "model.layers.*.mlp.shared": "moe_tp_experts"}},
  "fsdp": {{"model.layers.*": "free_full_weight"}},
  "ep": {{"model.layers.*.mlp.experts.gate_up_proj": "grouped_gemm",
   "model.layers.*.mlp.experts.down_proj": "grouped_gemm",
   "model.layers.*.mlp.experts": "ep_dispatch_experts"}}}}}})",
      modules, parameters);
}

struct ModelFromDump {
  ModelDump dump;
  DistributedConfig config;
  std::shared_ptr<Module> model;
};

ModelFromDump build(DistributedConfig config) {
  ModelFromDump built{parse_dump(dump_text(), "toy.json"), std::move(config), nullptr};
  built.model = model_from_dump(built.dump, built.config);
  return built;
}

CheckedPlan check(const ModelFromDump& built) {
  return check_plan(*built.model, built.config, built.dump.plans);
}

std::vector<int64_t> local_shape_of(const ModelFromDump& built, const ResolvedPlan& plan,
                                    const std::string& name, int64_t rank) {
  for (const ParameterState& state : parameters_on(*built.model, plan, rank))
    if (state.name == name) return state.local_shape;
  return {};
}

TEST(ModelDump, ReadsWhatItHolds) {
  const ModelDump dump = parse_dump(dump_text(), "toy.json");
  EXPECT_EQ(dump.model, "ToyForCausalLM");
  EXPECT_EQ(dump.dtype, "bfloat16");
  EXPECT_EQ(dump.heads, 4);
  EXPECT_EQ(dump.key_value_heads, 2);
  EXPECT_EQ(dump.head_dim, 3);
  EXPECT_EQ(dump.parameters.size(), 16u);
  EXPECT_EQ(dump.plans.tp.size(), 10u);
}

TEST(ModelDump, IsCutAsItsFamilyWouldBe) {
  const ModelFromDump built = build(config_from_layout("tp=2"));
  const CheckedPlan checked = check(built);
  EXPECT_FALSE(has_errors(checked.findings));
  const auto local = [&](const std::string& name, int64_t rank) {
    return local_shape_of(built, checked.plan, name, rank);
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(built.model->all_parameters().size(), 15u) << "the tied one once";
  EXPECT_EQ(local("model.embed_tokens.weight", 1), (Shape{25, 10}));
  EXPECT_EQ(local("model.layers.1.self_attn.q_proj.weight", 0), (Shape{6, 10}));
  EXPECT_EQ(local("model.layers.1.self_attn.o_proj.weight", 0), (Shape{10, 6}));
  // 7 gates and 7 ups: each is cut on its own, 4 and 3.
  EXPECT_EQ(local("model.layers.0.mlp.experts.gate_up_proj", 0), (Shape{2, 8, 10}));
  EXPECT_EQ(local("model.layers.0.mlp.experts.gate_up_proj", 1), (Shape{2, 6, 10}));
  EXPECT_EQ(local("model.layers.0.mlp.experts.down_proj", 1), (Shape{2, 10, 3}));
  EXPECT_EQ(local("model.layers.0.norm.weight", 1), (Shape{10}));
}

TEST(ModelDump, HeadsFewerThanRanksAreCopies) {
  const ModelFromDump built = build(config_from_layout("tp=4"));
  const CheckedPlan checked = check(built);
  std::vector<std::string> copies;
  for (const Finding& finding : checked.findings)
    if (finding.check == "copies") copies.push_back(finding.message);
  EXPECT_THAT(copies,
              ::testing::Contains(HasSubstr(
                  "k_proj\": \"colwise\" cuts dim 0 of model.layers.0.self_attn.k_proj.weight, "
                  "2 units of 3, on 4 tp ranks: each is held as copies by 2 ranks")));
  EXPECT_EQ(local_shape_of(built, checked.plan, "model.layers.0.self_attn.k_proj.weight", 3),
            (std::vector<int64_t>{3, 10}));
}

// 4 query and 2 key/value heads of 3 in one weight: each section is cut on its own.
TEST(ModelDump, PackedQueriesKeysAndValuesAreThreeSections) {
  std::string text = dump_text();
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  replace("q_proj", "qkv_proj");
  replace(R"(qkv_proj.weight", "shape": [12, 10])", R"(qkv_proj.weight", "shape": [24, 10])");
  replace(R"(qkv_proj": "colwise")", R"(qkv_proj": "packed_colwise")");
  ModelFromDump built{parse_dump(text, "toy.json"), config_from_layout("tp=4"), nullptr};
  built.model = model_from_dump(built.dump, built.config);
  const CheckedPlan checked = check(built);
  EXPECT_FALSE(has_errors(checked.findings));
  // One query head of 4, one copy of a key head and of a value head.
  EXPECT_EQ(local_shape_of(built, checked.plan, "model.layers.1.self_attn.qkv_proj.weight", 3),
            (std::vector<int64_t>{9, 10}));
}

TEST(ModelDump, ARuleOfItsPlanThatMatchesNothingIsANote) {
  const CheckedPlan checked = check(build(config_from_layout("tp=2")));
  std::vector<std::string> unmatched;
  for (const Finding& finding : checked.findings)
    if (finding.check == "unmatched") unmatched.push_back(finding.rule.pattern);
  EXPECT_EQ(unmatched, std::vector<std::string>{"model.layers.*.mlp.shared"});
}

TEST(ModelDump, ExpertsOnRanksOfTheirOwn) {
  const ModelFromDump built = build(config_from_layout("fsdp=2,ep=2"));
  const CheckedPlan checked = check(built);
  EXPECT_FALSE(has_errors(checked.findings));
  EXPECT_EQ(local_shape_of(built, checked.plan, "model.layers.0.mlp.experts.down_proj", 1),
            (std::vector<int64_t>{1, 10, 7}));
}

TEST(ModelDump, AnotherPlanIsCheckedAgainstIt) {
  DistributedConfig config = config_from_layout("tp=2");
  config.tp_plan = Plan{{"model.layers.*.mlp.experts.down_proj", "", "p:1"},
                        {"model.layers.*.norm", "colwise", "p:2"},
                        {"lm_head", "replicate", "p:3"}};
  const ModelFromDump built = build(config);
  std::vector<std::string> found;
  for (const Finding& finding : check(built).findings)
    found.push_back(finding.check + " " + finding.rule.origin + " " + finding.subject);
  EXPECT_THAT(found, ::testing::Contains("misfit p:2 model.layers.0.norm"));
  EXPECT_THAT(found, ::testing::Contains("tied  model.embed_tokens.weight"));
  EXPECT_THAT(found, ::testing::Contains("uncovered  model.layers.0.mlp.experts.down_proj"));
}

TEST(ModelDump, HasNoCode) {
  const ModelFromDump built = build({});
  EXPECT_THROW(built.model->modules().back()->call({at::zeros({1, 10})}), ContractError);
}

TEST(ModelDump, WhatIsNoDumpIsRefusedByName) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      parse_dump(text, "x.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no InputError";
  };
  EXPECT_THAT(error("[1"), HasSubstr("x.json: not a JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("shardproof_dump"));
  EXPECT_THAT(error(R"({"shardproof_dump": 2})"), HasSubstr("a dump of version 2"));
  const std::string head = R"({"shardproof_dump": 1, "model": "m", "config": {}, )";
  EXPECT_THAT(error(head + R"("modules": 3})"), HasSubstr("key 'modules' must be a list"));
  EXPECT_THAT(error(head + R"("modules": [{"path": "a", "kind": "Conv"}]})"),
              HasSubstr("x.json: a: the kind 'Conv' is none of"));
  EXPECT_THAT(error(head + R"("modules": [], "parameters": [{"name": "w", "shape": [-1]}]})"),
              HasSubstr("parameter w: its shape is not of sizes"));
}

}  // namespace
}  // namespace shardproof
