#include "parallel/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

std::vector<std::string> shown(const std::optional<Plan>& plan) {
  if (!plan) return {"none"};
  std::vector<std::string> lines;
  for (const PlanRule& rule : *plan)
    lines.push_back(rule.origin + " " + rule.pattern + " = " + rule.style);
  return lines;
}

std::string error_of(const std::string& text, PlanFormat format) {
  try {
    parse_plan(text, "p", format);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

TEST(PlanFile, TomlRulesKeepOrderAndLines) {
  const PlanFile plans = parse_plan(
      "# mine\n\"model.z.*.up\" = \"colwise\"\n\n\"model.a\" = \"rowwise\"\n\"lm_head\" = \"\"\n",
      "p.toml", PlanFormat::kToml);
  EXPECT_EQ(shown(plans.tp_plan),
            (std::vector<std::string>{"p.toml:2 model.z.*.up = colwise",
                                      "p.toml:4 model.a = rowwise", "p.toml:5 lm_head = "}));
  EXPECT_FALSE(plans.sp_plan);
  EXPECT_FALSE(plans.fsdp_plan);
}

TEST(PlanFile, TomlTables) {
  const PlanFile plans = parse_plan(
      "[fsdp_plan]\n\"b\" = \"free_full_weight\"\n[tp_plan]\n[sp_plan]\n\"n\" = "
      "\"sequence_parallel\"\n",
      "p.toml", PlanFormat::kToml);
  EXPECT_EQ(shown(plans.fsdp_plan), std::vector<std::string>{"p.toml:2 b = free_full_weight"});
  EXPECT_EQ(shown(plans.sp_plan), std::vector<std::string>{"p.toml:5 n = sequence_parallel"});
  ASSERT_TRUE(plans.tp_plan) << "given, and empty: no rule at all";
  EXPECT_TRUE(plans.tp_plan->empty());
}

TEST(PlanFile, JsonRulesKeepOrderAndLines) {
  const PlanFile plans =
      parse_plan("{\n  \"z\": \"colwise\",\n\n  \"a\":\n     \"rowwise\", \"lm_head\": null\n}\n",
                 "p.json", PlanFormat::kJson);
  EXPECT_EQ(shown(plans.tp_plan),
            (std::vector<std::string>{"p.json:2 z = colwise", "p.json:4 a = rowwise",
                                      "p.json:5 lm_head = "}));
}

TEST(PlanFile, JsonTablesAndAnEmptyPlan) {
  const PlanFile plans = parse_plan("{\"tp_plan\": {},\n\"fsdp_plan\": {\"b\":\n\"keep\"}}",
                                    "p.json", PlanFormat::kJson);
  EXPECT_EQ(shown(plans.tp_plan), std::vector<std::string>{});
  EXPECT_EQ(shown(plans.fsdp_plan), std::vector<std::string>{"p.json:2 b = keep"});
  EXPECT_EQ(shown(parse_plan("{}", "p", PlanFormat::kJson).tp_plan), std::vector<std::string>{});
  EXPECT_EQ(shown(parse_plan("[tp_plan]", "p", PlanFormat::kToml).tp_plan),
            std::vector<std::string>{});
  EXPECT_THROW(parse_plan("# nothing", "p", PlanFormat::kToml), InputError);
}

TEST(PlanFile, WrongTomlIsNamedWithItsLine) {
  const auto error = [](const std::string& text) { return error_of(text, PlanFormat::kToml); };
  EXPECT_THAT(error("\"a\" = \"x\"\nb ="), HasSubstr("p:2: "));
  EXPECT_THAT(error("\"a\" = \"x\"\n\n\"a\" = \"y\""), HasSubstr("p:3: "));
  EXPECT_THAT(error("\"a\" = \"x\"\n\"b\" = 3"),
              HasSubstr("p:2: the style of 'b' is of type integer: it must be a string"));
  EXPECT_THAT(
      error("\nmodel.norm = \"replicate\""),
      HasSubstr(
          "p:2: 'model' is a table: those of a plan are tp_plan, sp_plan, fsdp_plan, ep_plan"));
  EXPECT_THAT(error("[tp_pla]"), HasSubstr("did you mean tp_plan?"));
  EXPECT_THAT(error("\"a\" = \"x\"\n[tp_plan]"), HasSubstr("p:2: rules stand at the top and in"));
}

TEST(PlanFile, WrongJsonIsNamedWithItsLine) {
  const auto error = [](const std::string& text) { return error_of(text, PlanFormat::kJson); };
  EXPECT_THAT(error("{\n\"a\": \"x\"\n\"b\": \"y\"}"), HasSubstr("p:3: not JSON: "));
  EXPECT_THAT(error("{\n\"a\": \"x\",\n\"c\": \"x\",\n\"a\": \"y\"}"),
              HasSubstr("p:4: the pattern 'a' is given twice, first at p:2"));
  EXPECT_THAT(error("{\n\"a\": 3}"), HasSubstr("p:2: the style of 'a' is a number"));
  EXPECT_THAT(error("{\n\"a\": []}"), HasSubstr("p:2: the style of 'a' is a list"));
  EXPECT_THAT(error("{\"tp_plan\": {\n\"a\": {}}}"),
              HasSubstr("p:2: the style of 'a' is an object"));
  EXPECT_THAT(error("{\"pp_plan\": {}}"), HasSubstr("p:1: 'pp_plan' is a table"));
  EXPECT_THAT(error("{\"tp_plan\": {},\n\"tp_plan\": {}}"),
              HasSubstr("p:2: 'tp_plan' is given twice"));
  EXPECT_THAT(error("{\"tp_plan\": {}, \n\"a\": \"x\"}"), HasSubstr("p:2: rules stand"));
  EXPECT_THAT(error("[]"), HasSubstr("p:1: the file holds a list"));
  EXPECT_THAT(error("\"a\""), HasSubstr("p:1: the file holds a string"));
  EXPECT_THAT(error(""), HasSubstr("p:1: not JSON"));
}

TEST(PlanFile, SetsWhatItGives) {
  DistributedConfig config;
  config.sp_plan = Plan{{"n", "replicate"}};
  set_plans(config, parse_plan("[tp_plan]\n\"a\" = \"colwise\"", "p", PlanFormat::kToml));
  EXPECT_EQ(shown(config.tp_plan), std::vector<std::string>{"p:2 a = colwise"});
  EXPECT_EQ(config.sp_plan, (Plan{{"n", "replicate"}}));
}

TEST(PlanFile, AFileThatIsNotThere) { EXPECT_THROW(read_plan_file("nosuch.toml"), InputError); }

}  // namespace
}  // namespace shardproof
