// Sampling. The constants of the transformers tests were made with transformers 5.24 in float64.
#include "train/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"

namespace shardproof {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<double> kLogits = {1.5, -0.25, 2.0, 0.75, 2.0, -3.0, 0.5, 1.0};

std::vector<double> probabilities(const std::vector<double>& logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  std::vector<double> result;
  for (const double logit : logits) result.push_back(std::exp(logit) / sum);
  return result;
}

void expect_probabilities(const std::vector<double>& logits, const std::vector<double>& wanted) {
  const std::vector<double> got = probabilities(logits);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-15) << i;
    EXPECT_EQ(std::isinf(logits[i]), wanted[i] == 0) << i;
  }
}

TEST(Sampling, GreedyTakesTheLowestOfEqualIndices) {
  EXPECT_EQ(greedy(kLogits), 2);
  EXPECT_EQ(greedy(std::vector<double>{-2.0, -1.0}), 1);
  EXPECT_EQ(greedy(std::vector<double>{-kInfinity, -5.0}), 1);
  EXPECT_THROW(greedy(std::vector<double>{}), ContractError);
}

TEST(Sampling, MarginIsTheDistanceToTheSecond) {
  EXPECT_EQ(top2_margin(kLogits), 0.0);
  EXPECT_EQ(top2_margin(std::vector<double>{0.5, 3.0, 1.25}), 1.75);
  EXPECT_EQ(top2_margin(std::vector<double>{3.0, 1.25, 0.5}), 1.75);
  EXPECT_EQ(top2_margin(std::vector<double>{4.0}), kInfinity);
}

TEST(Sampling, TemperatureAsInTransformers) {
  auto logits = kLogits;
  divide_by_temperature(logits, 0.7);
  expect_probabilities(logits, {0.16023418684729349, 0.013152823006861629, 0.32731471105504945,
                                0.05488323022570011, 0.32731471105504945, 0.00025873911170382465,
                                0.038400288951359045, 0.07844130974698296});
}

TEST(Sampling, TopKAsInTransformers) {
  auto three = kLogits;
  keep_top_k(three, 3);
  expect_probabilities(
      three, {0.23269653761889864, 0, 0.38365173119055074, 0, 0.38365173119055074, 0, 0, 0});
  auto one = kLogits;  // what equals the last of the k stays
  keep_top_k(one, 1);
  expect_probabilities(one, {0, 0, 0.5, 0, 0.5, 0, 0, 0});
  for (const int64_t all : {8, 9}) {
    auto same = kLogits;
    keep_top_k(same, all);
    EXPECT_EQ(same, kLogits);
  }
}

TEST(Sampling, TopPAsInTransformers) {
  auto most = kLogits;
  keep_top_p(most, 0.8);
  expect_probabilities(most, {0.20391628562999972, 0, 0.33620111756034343, 0, 0.33620111756034343,
                              0, 0, 0.12368147924931353});
  auto two = kLogits;
  keep_top_p(two, 0.3);
  expect_probabilities(two, {0, 0, 0.5, 0, 0.5, 0, 0, 0});
  auto one = kLogits;  // of two that are equal, the later one
  keep_top_p(one, 0.01);
  expect_probabilities(one, {0, 0, 0, 0, 1, 0, 0, 0});
  auto all = kLogits;
  keep_top_p(all, 1.0);
  EXPECT_EQ(all, kLogits);
}

// u lies in the step of the distribution that the token's probability makes.
TEST(Sampling, DrawInvertsTheDistribution) {
  const std::vector<double> logits = {std::log(0.25), -kInfinity, std::log(0.5), std::log(0.25)};
  EXPECT_EQ(draw(logits, 0.0), 0);
  EXPECT_EQ(draw(logits, 0.2499), 0);
  EXPECT_EQ(draw(logits, 0.2501), 2);
  EXPECT_EQ(draw(logits, 0.7499), 2);
  EXPECT_EQ(draw(logits, 0.7501), 3);
  EXPECT_EQ(draw(logits, 1 - 0x1p-53), 3);
  EXPECT_EQ(draw(std::vector<double>{-kInfinity, 0.0, -kInfinity}, 0.0), 1);
  EXPECT_EQ(draw(std::vector<double>{-kInfinity, 0.0, -kInfinity}, 1 - 0x1p-53), 1);
  EXPECT_THROW(draw(std::vector<double>{-kInfinity, -kInfinity}, 0.5), ContractError);
  EXPECT_THROW(draw(logits, 1.0), ContractError);
}

// Temperature 0.7, top-k 5, top-p 0.9 in this order (another order keeps token 3 too).
TEST(Sampling, DrawsAreDistributedAsTransformersStates) {
  const std::vector<double> wanted = {
      0.1793723324390654, 0, 0.36640871913005657, 0, 0.36640871913005657, 0, 0,
      0.08781022930082158};
  const SamplingOptions options{.temperature = 0.7, .top_k = 5, .top_p = 0.9, .seed = 3};
  std::vector<double> counts(kLogits.size(), 0.0);
  const int64_t steps = 500, sequences = 40;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t sequence = 0; sequence < sequences; ++sequence)
      counts[choose_token(kLogits, options, step, sequence)] += 1.0 / (steps * sequences);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(counts[i], wanted[i], 5 * std::sqrt(0.25 / (steps * sequences))) << i;
    EXPECT_EQ(counts[i] == 0, wanted[i] == 0) << i;
  }
}

TEST(Sampling, ADrawIsKeyedBySeedStepAndSequence) {
  std::vector<double> logits(1000, 0.0);
  SamplingOptions options{.temperature = 1, .seed = 5};
  const int64_t first = choose_token(logits, options, 2, 3);
  EXPECT_EQ(choose_token(logits, options, 2, 3), first);
  std::set<int64_t> drawn = {first, choose_token(logits, options, 3, 2),
                             choose_token(logits, options, 2, 4)};
  options.seed = 6;
  drawn.insert(choose_token(logits, options, 2, 3));
  EXPECT_EQ(drawn.size(), 4u);
  EXPECT_EQ(choose_token(kLogits, {}, 0, 0), greedy(kLogits));
}

TEST(Sampling, WrongOptionsAreRefusedByName) {
  for (const SamplingOptions& wrong :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = NAN},
        SamplingOptions{.temperature = 1, .top_k = -1},
        SamplingOptions{.temperature = 1, .top_p = 0},
        SamplingOptions{.temperature = 1, .top_p = 1.5}, SamplingOptions{.top_k = 3},
        SamplingOptions{.top_p = 0.5}}) {
    EXPECT_THROW(wrong.validate(), InputError);
  }
  EXPECT_NO_THROW(SamplingOptions{}.validate());
}

}  // namespace
}  // namespace shardproof
