#include "harness/generation_rule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardproof {
namespace {

using Continuations = std::vector<Continuation>;

std::vector<Row> judged(const Continuations& run, const Continuations& truth,
                        const Continuations& reference, double noise) {
  return judge_continuations(run, truth, deciding_margins(truth, reference), noise, "bfloat16");
}

const Continuations kReference = {{{7, 8, 9}, {1.0, 0.25, 2.0}}, {{5, 6}, {3.0, 0.5}}};

TEST(GenerationRule, FirstDifferenceCountsMissingTokens) {
  EXPECT_FALSE(first_difference({1, 2}, {1, 2}).has_value());
  EXPECT_EQ(first_difference({1, 2}, {1, 3}), 1);
  EXPECT_EQ(first_difference({1, 2}, {1, 2, 3}), 2);
  EXPECT_EQ(first_difference({1}, {}), 0);
}

TEST(GenerationRule, EveryTokenMustBeTheSameWithoutNoise) {
  const std::vector<Row> same = judged(kReference, kReference, kReference, 0);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(first_wrong(same), nullptr);
  EXPECT_EQ(same[0].key.name, "prompt 0");
  EXPECT_EQ(same[0].elements, 3);
  EXPECT_EQ(same[0].error, 0);
  EXPECT_EQ(same[0].margins, kReference[0].margins);

  Continuations run = kReference;
  run[1].ids = {5, 4};
  const std::vector<Row> rows = judged(run, kReference, kReference, 0);
  const Row* wrong = first_wrong(rows);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->key.to_string(), "tokens of prompt 1, step 1");
  EXPECT_EQ(wrong->error, 1);
  EXPECT_EQ(wrong->allowed, 0);
  EXPECT_EQ(wrong->note, "step 2: token 4 instead of 6, margin 5.00e-01");
}

TEST(GenerationRule, ATokenTooManyOrTooFewIsADifference) {
  Continuations run = kReference;
  run[0] = {{7, 8}, {1.0, 0.25}};
  run[1] = {{5, 6, 4}, {3.0, 0.5, 1.0}};
  const std::vector<Row> rows = judged(run, kReference, kReference, 100);
  EXPECT_EQ(rows[0].note, "step 3: token none instead of 9, margin 2.00e+00, noise 1.00e+02");
  EXPECT_TRUE(rows[0].passed);
  EXPECT_EQ(rows[1].note, "step 3: token 4 instead of none, noise 1.00e+02");
  EXPECT_FALSE(rows[1].passed);
}

// Margins differ by 0.3 and 0.4 in the one step of each sequence before a difference, and by much
// after it: 4 sqrt((0.09 + 0.16) / 2).
TEST(GenerationRule, NoiseIsMeasuredBeforeAnyDifference) {
  const Continuations unsharded = {{{7, 1, 9}, {1.3, 90, 80}}, {{5, 1}, {2.6, 70}}};
  EXPECT_NEAR(margin_noise(unsharded, kReference), 4 * std::sqrt(0.125), 1e-14);
  EXPECT_TRUE(std::isnan(margin_noise({{{1}, {1}}, {{1}, {1}}}, kReference)));
}

TEST(GenerationRule, ADifferencePassesOnlyBelowTheNoiseAndIsNamed) {
  Continuations run = kReference;
  run[0].ids = {7, 1, 2};  // where the margin is 0.25
  std::vector<Row> rows = judged(run, kReference, kReference, 0.3);
  EXPECT_TRUE(rows[0].passed);
  EXPECT_EQ(rows[0].error, 2);
  EXPECT_EQ(rows[0].allowed, 2);  // what follows is another text
  EXPECT_EQ(rows[0].note, "step 2: token 1 instead of 8, margin 2.50e-01, noise 3.00e-01");
  EXPECT_FALSE(judged(run, kReference, kReference, 0.25)[0].passed);
  EXPECT_FALSE(judged(run, kReference, kReference, std::nan(""))[0].passed);
  run[0].ids = {7, 8, 2};  // where it is 2
  EXPECT_FALSE(judged(run, kReference, kReference, 0.3)[0].passed);
}

TEST(GenerationRule, MarginsAreHeldToTheNoiseToo) {
  Continuations run = kReference;
  run[1].margins = {3.0, 0.9};
  std::vector<Row> rows = judged(run, kReference, kReference, 0.1);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].key.kind, Kind::kMargins);
  EXPECT_NEAR(rows[2].error, 0.4 / std::sqrt(5), 1e-14);
  EXPECT_EQ(rows[2].elements, 5);
  EXPECT_FALSE(rows[2].passed);
  EXPECT_TRUE(judged(run, kReference, kReference, 0.2)[2].passed);
}

// The unsharded run left transformers' tokens at step 1: from step 2 on its own margins decide.
TEST(GenerationRule, TheOwnMarginDecidesAfterTheTruthHasLeftTheReference) {
  const Continuations unsharded = {{{7, 1, 4}, {1.5, 0.125, 0.75}}, {{5, 6}, {3.5, 0.25}}};
  const auto deciding = deciding_margins(unsharded, kReference);
  EXPECT_EQ(deciding[0], (std::vector{1.0, 0.25, 0.75}));
  EXPECT_EQ(deciding[1], (std::vector{3.0, 0.5}));
}

}  // namespace
}  // namespace shardproof
