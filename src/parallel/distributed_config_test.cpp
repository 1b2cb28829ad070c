#include "parallel/distributed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_errors.h"

namespace shardproof {
namespace {

using testing::HasSubstr;

TEST(Layout, OrderInTheStringMeansNothing) {
  EXPECT_EQ(config_from_layout("tp=2,fsdp=3"), config_from_layout("fsdp=3,tp=2"));
  EXPECT_EQ(config_from_layout("tp=2,fsdp=3").layout(), "fsdp=3,tp=2");
  EXPECT_EQ(config_from_layout("single").layout(), "single");
  EXPECT_EQ(config_from_layout("tp=2,fsdp=3").mesh().world_size(), 6);
}

TEST(Layout, TensorParallelIsTheFastestAxisUnlessMeshOrderSaysOtherwise) {
  DistributedConfig config = config_from_layout("tp=2,dp_replicate=2");
  EXPECT_EQ(config.mesh().coordinate(1, "tp"), 1);
  EXPECT_EQ(config.mesh().coordinate(1, "dp_replicate"), 0);
  config.mesh_order = {"tp", "dp_replicate", "fsdp"};
  EXPECT_EQ(config.mesh().coordinate(1, "tp"), 0);
  EXPECT_EQ(config.mesh().coordinate(1, "dp_replicate"), 1);
}

TEST(Layout, MistakesAreNamed) {
  EXPECT_THAT(error_of([] { config_from_layout("tpp=2"); }), HasSubstr("unknown axis \"tpp\""));
  EXPECT_THAT(error_of([] { config_from_layout("tp=0"); }), HasSubstr("\"0\""));
  EXPECT_THAT(error_of([] { config_from_layout("tp=2x"); }), HasSubstr("\"2x\""));
  EXPECT_THAT(error_of([] { config_from_layout("tp=2,tp=2"); }), HasSubstr("twice"));
  EXPECT_THAT(error_of([] { config_from_layout("tp"); }), HasSubstr("axis=size"));
}

TEST(ConfigJson, WhatTransformersWritesRoundTrips) {
  const std::string json = R"({"tp_size": 2, "tp_plan": {"model.layers.*.mlp.up_proj": "colwise"},
    "enable_sequence_parallel": false, "enable_expert_parallel": false, "fsdp_size": 2, "dp_replicate_size": 1,
    "fsdp_plan": null, "fsdp_cpu_offload": false, "fsdp_mixed_precision": false, "pp_size": null, "ep_size": 1,
    "ep_plan": null, "ep_implementation": "auto"})";
  const DistributedConfig config = config_from_json(json);
  EXPECT_EQ(config.layout(), "fsdp=2,tp=2");
  ASSERT_TRUE(config.tp_plan.has_value());
  EXPECT_EQ(*config.tp_plan, (Plan{{"model.layers.*.mlp.up_proj", "colwise"}}));
  EXPECT_EQ(config_from_json(to_json(config)), config);
}

TEST(ConfigJson, ExpertParallelWithoutASizeGoesOverTp) {
  const DistributedConfig config =
      config_from_json(R"({"tp_size": 2, "enable_expert_parallel": true})");
  EXPECT_EQ(config.ep_size, 2);
  EXPECT_EQ(config.tp_plan, Plan{});
}

// ep is the product of tp and the inner part of fsdp; what is left of fsdp is efsdp.
TEST(Mesh, ExpertsSeeTheSameRanksOtherwise) {
  const MeshShape mesh = config_from_layout("fsdp=4,tp=2,ep=4").mesh();
  EXPECT_EQ(mesh.world_size(), 8);
  EXPECT_EQ(mesh.size("fsdp"), 4);
  EXPECT_EQ(mesh.size("ep"), 4);
  EXPECT_EQ(mesh.size("efsdp"), 2);
  EXPECT_EQ(mesh.coordinate(5, "fsdp"), 2);  // 5 = efsdp 1, ep_fsdp 0, tp 1
  EXPECT_EQ(mesh.coordinate(5, "ep"), 1);
  EXPECT_EQ(mesh.coordinate(5, "efsdp"), 1);
  const MeshShape over_tp = config_from_layout("fsdp=2,tp=2,ep=2").mesh();
  EXPECT_EQ(over_tp.coordinate(3, "ep"), 1);
  EXPECT_EQ(over_tp.coordinate(3, "efsdp"), 1);
  EXPECT_THAT(error_of([] { config_from_layout("fsdp=3,tp=2,ep=4"); }), HasSubstr("ep_size is 4"));
}

TEST(ConfigJson, EmptyPlanMeansNoRuleAndAutoMeansTheModels) {
  EXPECT_EQ(config_from_json(R"({"tp_plan": {}})").tp_plan, Plan{});
  EXPECT_EQ(config_from_json(R"({"tp_plan": "auto"})").tp_plan, std::nullopt);
}

TEST(ConfigJson, RefusesByName) {
  EXPECT_THAT(error_of([] { config_from_json(R"({"tp_sizes": 2})"); }),
              HasSubstr("did you mean \"tp_size\""));
  EXPECT_THAT(error_of([] { config_from_json(R"({"pp_size": 2})"); }), HasSubstr("pp_size is 2"));
  EXPECT_THAT(error_of([] { config_from_json(R"({"tp_size": "2"})"); }), HasSubstr("tp_size"));
  EXPECT_THAT(error_of([] { config_from_json(R"({"mesh_order": ["tp"]})"); }),
              HasSubstr("mesh_order"));
  EXPECT_THAT(error_of([] { config_from_json("nonsense"); }), HasSubstr("not a JSON object"));
}

TEST(Plan, OverridesReplaceRuleByRule) {
  const Plan base{{"a", "colwise"}, {"b", "rowwise"}};
  EXPECT_EQ(merged(base, {{"b", "replicate"}, {"c", "colwise"}}),
            (Plan{{"a", "colwise"}, {"b", "replicate"}, {"c", "colwise"}}));
  EXPECT_EQ(merged(base, {{"a", ""}}), (Plan{{"b", "rowwise"}}));
}

}  // namespace
}  // namespace shardproof
