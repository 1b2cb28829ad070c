#include "parallel/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "parallel/style_blocks_test.h"

namespace shardproof {
namespace {

using namespace testing_blocks;
using testing::HasSubstr;

ResolvedPlan resolved(std::shared_ptr<Module> block, Plan rules, bool sequence_parallel = false,
                      Plan sp = {}) {
  Probe model(std::move(block));
  DistributedConfig config = config_from_layout("tp=2");
  config.enable_sequence_parallel = sequence_parallel;
  return resolve_with_findings(model, config.mesh(), config,
                               {.tp = std::move(rules), .fsdp = {}, .sp = std::move(sp)});
}

std::vector<std::string> messages(const ResolvedPlan& plan, const std::string& check) {
  std::vector<std::string> found;
  for (const Finding& finding : plan.findings)
    if (finding.check == check) found.push_back(finding.message);
  return found;
}

const Cut kSeven = Cut::plain(7);

TEST(Flow, ContainersLieAsTheirLinksSay) {
  const ResolvedPlan plan =
      resolved(std::make_shared<Pair>(kSeven),
               {{"block.first", "colwise"}, {"block.second", "rowwise"}, {"head", "colwise"}});
  EXPECT_TRUE(plan.findings.empty());
  EXPECT_EQ(plan.output("block.first", "output"), shard(-1, kSeven));
  EXPECT_EQ(plan.input("block.second", "input"), shard(-1, kSeven));
  EXPECT_TRUE(plan.output("block", "output").is_replicate());
  EXPECT_EQ(plan.output("", "logits"), shard(-1, Cut::plain(kVocab)));
}

TEST(Flow, TheStreamIsCutByTokensWithSequenceParallel) {
  const ResolvedPlan plan =
      resolved(std::make_shared<Pair>(kSeven),
               {{"embed", "embedding_rowwise"},
                {"block.first", "colwise"},
                {"block.second", "rowwise"},
                {"head", "colwise_gather_output"}},
               true, {{"norm", "sequence_parallel"}, {"last", "sequence_parallel"}});
  EXPECT_TRUE(plan.findings.empty()) << plan.findings.front().message;
  for (const char* path : {"embed", "norm", "block", "last"})
    EXPECT_TRUE(is_cut_by_tokens(plan.output(path, "output"))) << path;
  EXPECT_TRUE(is_cut_by_tokens(plan.input("block", "hidden_states")));
  EXPECT_TRUE(plan.output("", "logits").is_replicate());
}

TEST(Flow, AShardedOutputIntoAModuleThatExpectsItWhole) {
  const ResolvedPlan plan =
      resolved(std::make_shared<Pair>(kSeven), {{"block.first", "colwise", "p.toml:4"}});
  EXPECT_THAT(messages(plan, "edges"),
              testing::ElementsAre(HasSubstr(
                  "p.toml:4: rule \"block.first\": \"colwise\": the output \"output\" of "
                  "block.first lies cut by features, but the input \"input\" of block.second "
                  "expects it whole")));
}

TEST(Flow, AWholeOutputIntoAModuleThatExpectsItCut) {
  const ResolvedPlan plan = resolved(std::make_shared<Pair>(kSeven), {{"block.second", "rowwise"}});
  EXPECT_EQ(messages(plan, "edges").size(), 1u);
}

// The norm of the heads sees its rank's heads only: whole, its gradient would be a part.
TEST(Flow, AReplicatedNormBetweenCutHeads) {
  const ResolvedPlan plan =
      resolved(std::make_shared<Heads>(), {{"block.up", "colwise"}, {"block.down", "rowwise"}});
  EXPECT_THAT(messages(plan, "edges"),
              testing::Contains(HasSubstr("of block.norm expects it whole")));
  EXPECT_TRUE(messages(resolved(std::make_shared<Heads>(),
                                {{"block.up", "colwise"},
                                 {"block.norm", "replicated_with_grad_allreduce"},
                                 {"block.down", "rowwise"}}),
                       "edges")
                  .empty());
}

TEST(Flow, ANormWithoutARuleInASequenceParallelStream) {
  const ResolvedPlan plan = resolved(std::make_shared<Pair>(kSeven),
                                     {{"embed", "embedding_rowwise"},
                                      {"block.first", "colwise"},
                                      {"block.second", "rowwise"},
                                      {"head", "colwise_gather_output"}},
                                     true, {{"norm", "sequence_parallel"}});
  EXPECT_THAT(messages(plan, "edges"),
              testing::Contains(HasSubstr("with sequence parallel last needs a rule")));
}

TEST(Flow, AModuleWithCutParametersNeedsARule) {
  const ResolvedPlan plan = resolved(
      std::make_shared<Bare>(), {{"block.up", "colwise"}, {"block.down", "rowwise", "p.toml:1"}});
  EXPECT_THAT(messages(plan, "edges"),
              testing::Contains(HasSubstr("cuts block.down, but no rule says")));
}

TEST(Flow, ASumOfOutputsThatAreWhole) {
  EXPECT_THAT(messages(resolved(std::make_shared<Pair>(kSeven), {{"norm", "all_reduce"}}), "edges"),
              testing::Contains(HasSubstr("has all of norm.weight: it would count 2 times")));
  // One of two parameters is left whole.
  EXPECT_THAT(messages(resolved(std::make_shared<Bare>(),
                                {{"block", "all_reduce"}, {"block.up", "colwise"}}),
                       "edges"),
              testing::Contains(HasSubstr("has all of block.down")));
}

TEST(Flow, ASumOfGradientsThatAreWhole) {
  const ResolvedPlan plan = resolved(std::make_shared<Pair>(kSeven),
                                     {{"norm", "replicated_with_grad_allreduce", "p.toml:1"}});
  EXPECT_THAT(messages(plan, "edges"),
              testing::ElementsAre(HasSubstr("sums the gradient of norm.weight over the ranks")));
}

// The rope part of latent attention goes to every head.
TEST(Flow, WhatGoesToEveryHeadComesBackAsAddends) {
  const Plan cut = {{"block.kv_b", "colwise"}, {"block.o", "rowwise"}};
  EXPECT_THAT(messages(resolved(std::make_shared<Latent>(), cut), "edges"),
              testing::ElementsAre(HasSubstr("goes to every head, and the heads are cut")));
  EXPECT_THAT(
      messages(resolved(std::make_shared<Latent>(), {{"block.kv_a", "mla_kv_a_proj"}}), "edges"),
      testing::ElementsAre(HasSubstr("and the heads are whole")));
}

TEST(Flow, PackedSectionsMustMatch) {
  const ResolvedPlan plan =
      resolved(std::make_shared<Pair>(kSeven), {{"block.first", "packed_colwise", "p.toml:2"}});
  EXPECT_THAT(messages(plan, "misfit"), testing::ElementsAre(HasSubstr("packs nothing")));
}

}  // namespace
}  // namespace shardproof
