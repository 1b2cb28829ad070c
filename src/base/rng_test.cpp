#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"

namespace shardproof {
namespace {

// The known answers that the authors publish for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(HashName, IsStableAndTellsNamesApart) {
  EXPECT_EQ(hash_name("layers.0.weight"), hash_name("layers.0.weight"));

  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(hash_name("layers." + std::to_string(i)));
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(CounterRng, IsAPureFunctionOfSeedNameAndIndex) {
  const CounterRng a(7, "a");
  const CounterRng again(7, "a");

  EXPECT_EQ(a.uniform(5), again.uniform(5));
  EXPECT_NE(a.uniform(5), a.uniform(6));
  EXPECT_NE(a.uniform(5), CounterRng(8, "a").uniform(5));
  EXPECT_NE(a.uniform(5), CounterRng(7, "b").uniform(5));
  EXPECT_NE(a.uniform(5), a.uniform(5 + (uint64_t{1} << 32)));
  EXPECT_NE(a.uniform(5), CounterRng(7 + (uint64_t{1} << 32), "a").uniform(5));
}

TEST(CounterRng, UniformFillsTheUnitInterval) {
  const CounterRng rng(1, "uniform");
  constexpr int kCount = 20000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.uniform(static_cast<uint64_t>(i));
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += x * x;
  }

  // Five standard errors.
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
}

TEST(CounterRng, NormalHasTheMomentsOfANormal) {
  const CounterRng rng(1, "normal");
  constexpr int kCount = 20000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal(static_cast<uint64_t>(i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }

  EXPECT_NEAR(sum / kCount, 0, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourths / kCount, 3, 5 * std::sqrt(96.0 / kCount));
}

TEST(CounterRng, IntegersAreEvenBelowTheBound) {
  const CounterRng rng(1, "integer");
  constexpr int kCount = 14000;
  std::vector<int> counts(7);
  for (int i = 0; i < kCount; ++i) ++counts.at(rng.integer(static_cast<uint64_t>(i), 7));

  for (const int count : counts) EXPECT_NEAR(count, 2000, 5 * std::sqrt(2000.0));
  EXPECT_EQ(rng.integer(0, 1), 0U);
  EXPECT_LT(rng.integer(0, ~uint64_t{0}), ~uint64_t{0});
  EXPECT_THROW(rng.integer(0, 0), ContractError);
}

}  // namespace
}  // namespace shardproof
