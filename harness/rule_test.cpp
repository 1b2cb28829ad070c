#include "harness/rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "comm/self.h"
#include "harness/comparison.h"

namespace shardproof {
namespace {

Value whole(Kind kind, const std::string& name, const at::Tensor& tensor) {
  return {{kind, name, 0}, tensor, [](const std::vector<int64_t>& shape) {
            return Part::own(whole_region(shape));
          }};
}

// A record of a gradient of 100 elements of norm 10, one of 4 of norm 2, one of zeros, and a loss.
class Rule : public testing::Test {
 protected:
  Rule() : folder_(std::filesystem::path(testing::TempDir()) / "shardproof_rule_test") {
    std::filesystem::remove_all(folder_);
    RecordWriter writer(folder_);
    for (const Value& value : truth()) writer.take(value);
    writer.finish({"large", "small", "zero"});
    record_ = std::make_unique<RunRecord>(folder_);
    rounding_.by_entry.resize(record_->entries().size());
  }
  ~Rule() override { std::filesystem::remove_all(folder_); }

  static std::vector<Value> truth() {
    return {whole(Kind::kGradient, "large", at::ones({100}, at::kDouble)),
            whole(Kind::kGradient, "small", at::ones({4}, at::kDouble)),
            whole(Kind::kGradient, "zero", at::zeros({80}, at::kDouble)),
            whole(Kind::kLoss, "loss", at::scalar_tensor(2.0, at::kDouble))};
  }
  const RecordEntry& entry(Kind kind, const std::string& name) {
    return *record_->find({kind, name, 0});
  }
  RoundingError& rounding_of(const std::string& name) {
    return rounding_.by_entry.at(entry(Kind::kGradient, name).order);
  }
  double allowed(const std::string& name) {
    return level2_bound(*record_, entry(Kind::kGradient, name), rounding_).allowed;
  }
  // The row of a value, where `values` are what the run shows.
  Row row(const std::vector<Value>& values, const std::string& name) {
    const CommPtr self = make_self_communicator();
    RunComparison comparison(*record_,
                             {.steps = 1, .allow_zero = {"zero"}, .rounding = &rounding_});
    for (const Value& value : values) comparison.take(value);
    for (const Row& row : comparison.finish(*self))
      if (row.key.name == name) return row;
    throw std::runtime_error("no row of " + name);
  }

  std::filesystem::path folder_;
  std::unique_ptr<RunRecord> record_;
  RoundingErrors rounding_;
};

constexpr double kFloatEps = 0x1p-23;

TEST_F(Rule, Level1AllowsTheSameOfEachNorm) {
  EXPECT_EQ(level1_bound(*record_, entry(Kind::kGradient, "large")).allowed, 1e-10);
}

TEST_F(Rule, Level2TakesTheLargestOfWhatRoundingDoes) {
  EXPECT_DOUBLE_EQ(allowed("large"), 4 * kFloatEps);
  rounding_of("large").unsharded = 1e-3;
  EXPECT_DOUBLE_EQ(allowed("large"), 4 * 1e-4);  // over the norm of 10
  rounding_of("large").twins = 2e-3;
  EXPECT_DOUBLE_EQ(allowed("large"), 4 * 2e-4);
  rounding_of("small") = {.unsharded = 1e-6, .twins = 1e-3};
  EXPECT_DOUBLE_EQ(allowed("small"), 2 * 1e-3);
  rounding_of("small") = {.unsharded = 0, .twins = 0};
  EXPECT_DOUBLE_EQ(allowed("small"), 4 * kFloatEps);
  rounding_.dtype = at::kBFloat16;
  EXPECT_DOUBLE_EQ(allowed("small"), 4 * 0x1p-7);
}

// A difference of norms would be zero for both.
TEST_F(Rule, SmallTensorsAndScalarsAreComparedWithTheirSigns) {
  std::vector<Value> values = truth();
  values[1].local = at::tensor({1., -1., 1., 1.}, at::kDouble);
  values[3].local = at::scalar_tensor(-2.0, at::kDouble);
  EXPECT_FALSE(row(values, "small").passed);
  EXPECT_DOUBLE_EQ(row(values, "small").error, 1);
  EXPECT_FALSE(row(values, "loss").passed);
  EXPECT_EQ(row(values, "loss").error, 2);
}

TEST_F(Rule, TheShareOfTheBudgetIsErrorOverAllowed) {
  std::vector<Value> values = truth();
  rounding_of("large").unsharded = 1e-3;
  values[0].local = values[0].local * (1 + 1e-4);
  const Row found = row(values, "large");
  EXPECT_TRUE(found.passed);
  EXPECT_NEAR(found.share(), 0.25, 1e-10);
  EXPECT_EQ(found.level, 2);
  EXPECT_EQ(found.dtype, "float32");
}

TEST_F(Rule, WhatIsNotFinitePassesNothing) {
  std::vector<Value> values = truth();
  values[0].local = values[0].local.clone();
  values[0].local[3] = INFINITY;
  EXPECT_EQ(row(values, "large").note, "not finite");
  EXPECT_FALSE(row(values, "large").passed);
  rounding_of("small").twins = std::nan("");
  EXPECT_FALSE(row(truth(), "small").passed);
  EXPECT_NE(row(truth(), "small").note, "");
}

// Rounded, a sum that is zero by mathematics is as large as the rounding of its addends.
TEST_F(Rule, ZeroByMathematicsMayBeRoundingNoise) {
  std::vector<Value> values = truth();
  values[2].local = at::full({80}, 1e-8, at::kDouble);
  EXPECT_TRUE(row(values, "zero").passed);
  EXPECT_TRUE(row(values, "zero").zero);
  values[2].local = at::full({80}, 1e-5, at::kDouble);
  EXPECT_FALSE(row(values, "zero").passed);
}

}  // namespace
}  // namespace shardproof
