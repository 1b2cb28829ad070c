#include "parallel/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_errors.h"
#include "parallel/toy_model_test.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

ResolvedPlan resolve_toy(const std::string& layout, bool tied = false,
                         std::optional<Plan> tp_plan = {}) {
  ToyModel model(tied);
  DistributedConfig config = config_from_layout(layout);
  config.tp_plan = std::move(tp_plan);
  return resolve(model, config.mesh(), config, ToyModel::plans());
}

TEST(Resolve, AxesOfSizeOneVanish) {
  const ResolvedPlan plan = resolve_toy("single");
  EXPECT_TRUE(plan.modules.empty());
  for (const ResolvedParameter& parameter : plan.parameters) {
    EXPECT_TRUE(parameter.kept_placements.empty()) << parameter.name;
    EXPECT_TRUE(parameter.view_placements.empty()) << parameter.name;
  }
}

TEST(Resolve, NestsTensorParallelThenFsdp) {
  const ResolvedPlan plan = resolve_toy("fsdp=2,tp=2");
  const ResolvedParameter& up = plan.parameter("layer0.up_proj.weight");
  EXPECT_EQ(up.style, "colwise");
  ASSERT_EQ(up.kept_placements.size(), 2u);
  EXPECT_EQ(up.kept_placements[0].axis, "tp");
  EXPECT_EQ(up.kept_placements[1].axis, "fsdp");
  EXPECT_EQ(up.kept_placements[1].placement, shard(0));
  ASSERT_EQ(up.view_placements.size(), 1u);
  EXPECT_EQ(up.unit, "layer0");
  EXPECT_EQ(plan.output("layer0.up_proj", "output").to_string(), "S(-1)");
  EXPECT_TRUE(plan.output("layer0.down_proj", "output").is_replicate());
}

TEST(Resolve, ARowwiseBiasIsAnAddendInside) {
  const ResolvedPlan plan = resolve_toy("tp=2");
  const Edge& edge = plan.parameter("layer0.down_proj.bias").edge;
  EXPECT_EQ(edge, (Edge{replicate(), partial(), replicate(), replicate()}));
  EXPECT_TRUE(plan.parameter("layer0.down_proj.bias").kept_placements.empty());
}

TEST(Resolve, TiedParametersBelongToTheRootUnit) {
  const ResolvedPlan untied = resolve_toy("fsdp=2", false);
  EXPECT_EQ(untied.parameter("embed.weight").unit, "embed");
  EXPECT_EQ(untied.parameter("head.weight").unit, "head");
  const ResolvedPlan tied = resolve_toy("fsdp=2", true);
  EXPECT_EQ(tied.parameter("embed.weight").unit, "");
  EXPECT_EQ(tied.units.front().parameters, std::vector<std::string>{"embed.weight"});
  EXPECT_FALSE(tied.units.front().free_after_forward);
}

TEST(Resolve, EveryParameterIsInOneUnit) {
  const ResolvedPlan plan = resolve_toy("fsdp=2,tp=2", true);
  std::vector<std::string> in_units, all;
  for (const ResolvedUnit& unit : plan.units) {
    in_units.insert(in_units.end(), unit.parameters.begin(), unit.parameters.end());
  }
  for (const ResolvedParameter& parameter : plan.parameters) all.push_back(parameter.name);
  EXPECT_THAT(in_units, testing::UnorderedElementsAreArray(all));
}

TEST(Resolve, MistakesOfAUserAreNamed) {
  const auto with = [](PlanRule rule) {
    return error_of([&] { resolve_toy("tp=2", false, Plan{std::move(rule)}); });
  };
  EXPECT_THAT(with({"layer7.up_proj", "colwise", "plan.toml:3"}),
              HasSubstr("plan.toml:3: rule \"layer7.up_proj\": \"colwise\" matches no module"));
  EXPECT_THAT(with({"layer0.up_proj", "colwize", "plan.toml:4"}),
              HasSubstr("did you mean \"colwise\"?"));
  EXPECT_THAT(with({"embed", "rowwise", "plan.toml:5"}),
              HasSubstr("does not fit embed, a Embedding"));
}

TEST(Resolve, TiedParametersNeedRulesThatAgree) {
  EXPECT_THAT(error_of([] {
                resolve_toy("tp=2", true, Plan{{"head", "rowwise", "plan.toml:1"}});
              }),
              HasSubstr("treat the tied parameter embed.weight differently"));
}

TEST(Resolve, OfTiedModulesAllAreCutOrNone) {
  for (const char* style : {"replicate", ""}) {
    EXPECT_THAT(error_of([&] {
                  resolve_toy("tp=2", true, Plan{{"embed", style}});
                }),
                HasSubstr("cuts the tied parameter embed.weight, which embed uses whole"))
        << style;
    EXPECT_THAT(error_of([&] {
                  resolve_toy("tp=2", true, Plan{{"head", style}});
                }),
                HasSubstr("cuts the tied parameter embed.weight, which head uses whole"))
        << style;
  }
  const ResolvedPlan both = resolve_toy("tp=2", true, Plan{{"embed", ""}, {"head", ""}});
  EXPECT_TRUE(both.parameter("embed.weight").kept_placements.empty());
}

TEST(Resolve, FsdpRulesMustMatchOnce) {
  const auto with = [](Plan plan) {
    return error_of([&] {
      ToyModel model(false);
      DistributedConfig config = config_from_layout("fsdp=2");
      config.fsdp_plan = std::move(plan);
      resolve(model, config.mesh(), config, ToyModel::plans());
    });
  };
  EXPECT_THAT(with({{"layer9", "free_full_weight"}}),
              HasSubstr("fsdp_plan: rule \"layer9\": \"free_full_weight\" matches no module"));
  EXPECT_THAT(with({{"layer0", "free"}}), HasSubstr("is free_full_weight or keep_full_weight"));
}

TEST(Resolve, AnEmptyPlanMeansNoRule) {
  const ResolvedPlan plan = resolve_toy("tp=2", false, Plan{});
  EXPECT_TRUE(plan.modules.empty());
}

}  // namespace
}  // namespace shardproof
