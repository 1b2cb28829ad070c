// Plans that are wrong, each with the finding that says so; and none on the plans that are shipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/check_plan.h"
#include "analysis/testing.h"
#include "base/error.h"
#include "base/test_source.h"
#include "parallel/plan_file.h"

namespace shardproof {
namespace {

struct WrongPlan {
  std::string name;
  std::string fixture;
  std::string layout;  // "+sp": with sequence parallel
  std::string plan;    // TOML
  std::string check;
  std::string origin;   // of the rule that is found
  std::string message;  // a part of it
};

std::ostream& operator<<(std::ostream& out, const WrongPlan& wrong) { return out << wrong.name; }

const std::string kUntied = "llama_untied_9_3";
const std::string kTied = "llama_tied_4_1";

const std::vector<WrongPlan> kWrongPlans = {
    {"letters_swapped", kUntied, "tp=2", "\n\"model.layers.*.self_attn.q_porj\" = \"colwise\"",
     "unmatched", "p:2", "did you mean \"model.layers.*.self_attn.q_proj\"?"},
    {"prefix_left_out", kUntied, "tp=2", "\"layers.*.mlp.up_proj\" = \"replicate\"", "unmatched",
     "p:1", "did you mean \"model.layers.*.mlp.up_proj\"?"},
    {"layer_that_is_not_there", kUntied, "tp=2",
     "\"lm_head\" = \"replicate\"\n\"model.layers.7.mlp.up_proj\" = \"replicate\"", "unmatched",
     "p:2", "matches no module and no parameter"},
    {"parameter_of_another_model", kUntied, "tp=2",
     "\"model.layers.*.self_attn.sinks\" = \"local_params\"", "unmatched", "p:1", "sinks"},
    {"one_layer_and_all", kUntied, "tp=2", "\"model.layers.0.mlp.up_proj\" = \"colwise\"",
     "matched-twice", "p:1", "\"model.layers.*.mlp.up_proj\": \"colwise\" matched already"},
    {"style_misspelt", kUntied, "tp=2", "\"lm_head\" = \"colwize\"", "unknown-style", "p:1",
     "did you mean \"colwise\"?"},
    {"style_unheard_of", kUntied, "tp=2", "# none such\n\n\"lm_head\" = \"zigzag_ring_cut\"",
     "unknown-style", "p:3", "known are all_reduce, colwise, "},
    {"linear_style_on_a_norm", kUntied, "tp=2", "\"model.norm\" = \"colwise\"", "misfit", "p:1",
     "does not fit model.norm, a RmsNorm: the style is for Linear"},
    {"linear_style_on_an_embedding", kUntied, "tp=2", "\"model.embed_tokens\" = \"rowwise\"",
     "misfit", "p:1", "model.embed_tokens, a Embedding"},
    {"linear_style_on_a_whole_mlp", kUntied, "tp=2", "\"model.layers.*.mlp\" = \"rowwise\"",
     "misfit", "p:1", "model.layers.0.mlp, a GatedMlp"},
    {"packed_style_on_a_plain_weight", kUntied, "tp=2",
     "\"model.layers.*.mlp.up_proj\" = \"packed_colwise\"", "misfit", "p:1",
     "dim 0 of its 37x27 packs nothing, it is one section of 37"},
    {"module_style_on_a_parameter", kUntied, "tp=2",
     "\"model.norm.weight\" = \"sequence_parallel\"", "misfit", "p:1",
     "a parameter: the style is for modules"},
    {"tied_head_left_whole", kTied, "tp=2", "\"lm_head\" = \"replicate\"", "tied", "",
     "which lm_head uses whole"},
    {"tied_head_cut_the_other_way", kTied, "tp=2", "\"lm_head\" = \"rowwise_split_input\"", "tied",
     "p:1", "treat the tied parameter model.embed_tokens.weight differently"},
    {"second_colwise_in_a_row", kUntied, "tp=2",
     "\"model.layers.*.self_attn.o_proj\" = \"colwise\"", "edges", "p:1",
     "lies cut by features, but the input \"input\" of model.layers.0.self_attn.o_proj expects it "
     "whole"},
    {"whole_down_projection", kUntied, "tp=2", "\"model.layers.*.mlp.down_proj\" = \"replicate\"",
     "edges", "p:1", "model.layers.0.mlp.down_proj"},
    {"queries_gathered_alone", kUntied, "tp=2",
     "\"model.layers.*.self_attn.q_proj\" = \"colwise_gather_output\"", "edges", "p:1",
     "model.layers.0.self_attn.q_proj"},
    {"gate_whole_and_up_cut", kUntied, "tp=2", "\"model.layers.*.mlp.gate_proj\" = \"replicate\"",
     "edges", "p:1", "model.layers.0.mlp.gate_proj"},
    {"norm_outside_the_stream", kUntied, "tp=2+sp", "[sp_plan]\n\"model.norm\" = \"replicate\"",
     "edges", "p:2", "model.norm"},
    {"whole_module_replicated", kUntied, "tp=2", "\"model.norm\" = \"replicate\"", "no-effect",
     "p:1", "changes nothing"},
    {"nothing_taken_away", kUntied, "tp=2", "\"model.norm\" = \"\"", "no-effect", "p:1",
     "takes away a rule that the model's own plan does not have"},
    {"idle_ranks", kUntied, "tp=4", "\"model.layers.*.self_attn.k_proj\" = \"colwise\"", "cut",
     "p:1", "3 units of 6, on 4 tp ranks: 1 rank owns nothing"},
    {"fsdp_style_misspelt", kUntied, "fsdp=2", "[fsdp_plan]\n\"model.layers.*\" = \"free\"",
     "unknown-style", "p:2", "free_full_weight or keep_full_weight"},
    {"fsdp_layer_twice", kUntied, "fsdp=2",
     "[fsdp_plan]\n\"model.layers.0\" = \"free_full_weight\"", "matched-twice", "p:2",
     "matches model.layers.0, which another FSDP rule matched already"},
    {"fsdp_no_such_module", kUntied, "fsdp=2",
     "[fsdp_plan]\n\"model.layer.*\" = \"free_full_weight\"", "unmatched", "p:2",
     "did you mean \"model.layers.*\"?"},
};

LoadedModel load(const std::string& fixture) {
  static const FamilyRegistry families = shipped_families();
  return build_from_directory(families, (source_folder() / "fixtures" / fixture).string());
}

DistributedConfig config_of(std::string layout) {
  const bool sequence_parallel = layout.ends_with("+sp");
  if (sequence_parallel) layout.resize(layout.size() - 3);
  DistributedConfig config = config_from_layout(layout);
  config.enable_sequence_parallel = sequence_parallel;
  return config;
}

std::string shown(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += fmt::format("{} [{}] {}\n",
                        finding.severity == Finding::Severity::kError ? "error" : "note",
                        finding.check, finding.message);
  return text;
}

class WrongPlans : public ::testing::TestWithParam<WrongPlan> {};

TEST_P(WrongPlans, IsFound) {
  const WrongPlan& wrong = GetParam();
  const LoadedModel loaded = load(wrong.fixture);
  DistributedConfig config = config_of(wrong.layout);
  set_plans(config, parse_plan(wrong.plan, "p", PlanFormat::kToml));
  const Findings findings =
      check_plan(*loaded.causal_lm.model, config, loaded.family->plans).findings;
  const auto hit = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Finding::Severity::kError && finding.check == wrong.check &&
           finding.rule.origin == wrong.origin &&
           finding.message.find(wrong.message) != std::string::npos;
  });
  EXPECT_NE(hit, findings.end()) << shown(findings);
  // The layers are folded: a wrong rule is not told of once a layer.
  EXPECT_LE(std::count_if(findings.begin(), findings.end(),
                          [&](const Finding& finding) {
                            return finding.severity == Finding::Severity::kError &&
                                   finding.check == wrong.check;
                          }),
            3)
      << shown(findings);
}

INSTANTIATE_TEST_SUITE_P(All, WrongPlans, ::testing::ValuesIn(kWrongPlans),
                         [](const auto& info) { return info.param.name; });

TEST(ShippedPlans, HaveNoErrorsAndNoFalseNotes) {
  size_t checked = 0, expected = 0;
  const std::vector<std::string> layouts = {"single",      "fsdp=3",  "tp=2",    "tp=3",   "tp=4",
                                            "fsdp=2,tp=2", "tp=2+sp", "tp=3+sp", "tp=4+sp"};
  const std::vector<std::string> expert_layouts = {"fsdp=2,ep=2", "tp=2,ep=2", "fsdp=2,tp=2,ep=4"};
  for (const std::string& directory : testing::fixture_directories()) {
    const std::string fixture = std::filesystem::path(directory).filename();
    const LoadedModel loaded = load(fixture);
    std::vector<std::string> own = layouts;
    if (!loaded.family->plans.ep.empty())
      own.insert(own.end(), expert_layouts.begin(), expert_layouts.end());
    expected += own.size();
    for (const std::string& layout : own) {
      const Findings findings =
          check_plan(*loaded.causal_lm.model, config_of(layout), loaded.family->plans).findings;
      EXPECT_FALSE(has_errors(findings)) << fixture << " " << layout << "\n" << shown(findings);
      // Plans of families with experts and latent attention have rules for what one config lacks,
      // and leave routers whole; such notes are true.
      const bool dense = loaded.family->plans.ep.empty();
      for (const Finding& finding : findings) {
        std::vector<std::string> true_notes = {"cut", "copies"};
        if (!dense) true_notes.insert(true_notes.end(), {"unmatched", "uncovered"});
        EXPECT_THAT(true_notes, ::testing::Contains(finding.check))
            << fixture << " " << layout << ": " << finding.message;
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, expected);
  EXPECT_GE(expected, 15 * layouts.size() + 6 * expert_layouts.size());
}

TEST(CheckPlan, WhatTheModelSaysAlreadyIsANote) {
  struct Repeated {
    std::string layout, plan, message;
  };
  const std::vector<Repeated> all = {
      {"tp=2", "\"lm_head\" = \"colwise_rep\"",
       "changes nothing: the model's own rule for it is \"colwise_gather_output\""},
      {"tp=2+sp", "[sp_plan]\n\"model.norm\" = \"sequence_parallel\"",
       "the model's own rule for it is \"sequence_parallel\""},
      {"fsdp=2", "[fsdp_plan]\n\"model.layers.*\" = \"free_full_weight\"",
       "the model's own rule for it is \"free_full_weight\""},
      {"tp=2", "[sp_plan]\n\"model.norm\" = \"sequence_parallel\"",
       "the 1 rules of the sp_plan (p:2) do nothing here: sequence parallel is off"},
      {"fsdp=2", "[ep_plan]\n\"model.norm\" = \"replicate\"",
       "the 1 rules of the ep_plan (p:2) do nothing here: the layout has no ep axis"}};
  for (const auto& [layout, plan, message] : all) {
    const LoadedModel loaded = load(kUntied);
    DistributedConfig config = config_of(layout);
    set_plans(config, parse_plan(plan, "p", PlanFormat::kToml));
    const Findings findings =
        check_plan(*loaded.causal_lm.model, config, loaded.family->plans).findings;
    EXPECT_FALSE(has_errors(findings)) << shown(findings);
    EXPECT_THAT(shown(findings), ::testing::HasSubstr("note [no-effect] "));
    EXPECT_THAT(shown(findings), ::testing::HasSubstr(message));
  }
}

TEST(CheckPlan, ExpertParallel) {
  const auto check = [](const std::string& fixture, const std::string& plan) {
    const LoadedModel loaded = load(fixture);
    DistributedConfig config = config_of("fsdp=2,tp=2,ep=2");
    if (!plan.empty()) set_plans(config, parse_plan(plan, "p", PlanFormat::kToml));
    return check_plan(*loaded.causal_lm.model, config, loaded.family->plans).findings;
  };
  EXPECT_THAT(shown(check(kUntied, "")),
              ::testing::HasSubstr("error [ep] ep_size is 2, but no rule of an ep_plan holds"));
  const Findings repeated =
      check("mixtral_6_2",
            "[tp_plan]\n\"model.layers.*.mlp.experts.gate_up_proj\" = \"packed_colwise\"\n"
            "[ep_plan]\n\"model.layers.*.mlp.experts\" = \"ep_dispatch_experts\"");
  EXPECT_FALSE(has_errors(repeated)) << shown(repeated);
  EXPECT_THAT(shown(repeated),
              ::testing::HasSubstr("does nothing with ep, which puts another in its place: rule "));
  EXPECT_THAT(shown(repeated),
              ::testing::HasSubstr("the model's own rule for it is \"ep_dispatch_experts\""));
}

TEST(CheckPlan, StrictMakesErrorsOfNotes) {
  const LoadedModel loaded = load(kUntied);
  const DistributedConfig config = config_of("tp=2");
  const auto check = [&](bool strict) {
    return check_plan(*loaded.causal_lm.model, config, loaded.family->plans, {.strict = strict})
        .findings;
  };
  ASSERT_FALSE(check(false).empty());  // 101 tokens on 2 ranks
  EXPECT_FALSE(has_errors(check(false)));
  EXPECT_TRUE(has_errors(check(true)));
}

TEST(CheckPlan, ARuleThatIsTakenAwayLeavesAHole) {
  const LoadedModel loaded = load(kUntied);
  DistributedConfig config = config_of("tp=2");
  set_plans(config, parse_plan("\"model.layers.*.mlp.up_proj\" = \"\"\n"
                               "\"model.layers.*.mlp.gate_proj\" = \"\"\n"
                               "\"model.layers.*.mlp.down_proj\" = \"\"",
                               "p", PlanFormat::kToml));
  const Findings findings =
      check_plan(*loaded.causal_lm.model, config, loaded.family->plans).findings;
  EXPECT_FALSE(has_errors(findings)) << shown(findings);
  EXPECT_THAT(shown(findings),
              ::testing::HasSubstr(
                  "no rule covers model.layers.{0..1}.mlp.gate_proj.weight (37x27 each, "));
}

TEST(CheckPlan, RulesWithoutATpAxisAreANote) {
  const LoadedModel loaded = load(kUntied);
  DistributedConfig config = config_of("fsdp=2");
  set_plans(config, parse_plan("\"lm_head\" = \"rowwise_rep\"", "p", PlanFormat::kToml));
  const Findings findings =
      check_plan(*loaded.causal_lm.model, config, loaded.family->plans).findings;
  EXPECT_FALSE(has_errors(findings));
  EXPECT_THAT(shown(findings),
              ::testing::HasSubstr("the 1 rules of the tp_plan (p:1) do nothing here"));
}

}  // namespace
}  // namespace shardproof
