#include "harness/comparison.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "comm/threads/run_ranks.h"

namespace shardproof {
namespace {

Value value(Kind kind, const std::string& name, const at::Tensor& local, Region region,
            bool owned = true, int64_t step = 0) {
  return {{kind, name, step}, local, [=](const std::vector<int64_t>&) {
            return Part{region, owned ? std::optional(region) : std::nullopt};
          }};
}

Value whole(Kind kind, const std::string& name, const at::Tensor& tensor) {
  return value(kind, name, tensor,
               tensor.defined() ? whole_region(tensor.sizes().vec()) : Region{});
}

at::Tensor counted(std::vector<int64_t> shape) {
  int64_t size = 1;
  for (const int64_t s : shape) size *= s;
  return (at::arange(size, at::kDouble) + 1).reshape(shape);
}

// A record of an output [4, 3], a gradient [5], a gradient of zeros, one that is missing, and a
// loss.
class Comparison : public testing::Test {
 protected:
  Comparison() : folder_(std::filesystem::path(testing::TempDir()) / "shardproof_comparison_test") {
    std::filesystem::remove_all(folder_);
    RecordWriter writer(folder_);
    writer.take(whole(Kind::kOutput, "mlp", counted({4, 3})));
    writer.take(whole(Kind::kGradient, "w", counted({5})));
    writer.take(whole(Kind::kGradient, "zero", at::zeros({2}, at::kDouble)));
    writer.take(whole(Kind::kGradient, "missing", {}));
    writer.flush();
    writer.take(whole(Kind::kLoss, "loss", at::scalar_tensor(2.5, at::kDouble)));
    writer.finish({"zero", "w"});
    record_ = std::make_unique<RunRecord>(folder_);
  }
  ~Comparison() override { std::filesystem::remove_all(folder_); }

  // What one rank finds that shows `values`.
  std::vector<Row> compare(const std::vector<Value>& values,
                           ComparisonOptions options = {.steps = 1}) {
    std::vector<Row> rows;
    run_ranks(1, [&](const CommPtr& comm) {
      RunComparison comparison(*record_, options);
      for (const Value& shown : values) comparison.take(shown);
      rows = comparison.finish(*comm);
    });
    return rows;
  }

  std::vector<Value> all_right() {
    return {whole(Kind::kOutput, "mlp", counted({4, 3})), whole(Kind::kGradient, "w", counted({5})),
            whole(Kind::kGradient, "zero", at::zeros({2}, at::kDouble)),
            whole(Kind::kGradient, "missing", {}),
            whole(Kind::kLoss, "loss", at::scalar_tensor(2.5, at::kDouble))};
  }

  std::filesystem::path folder_;
  std::unique_ptr<RunRecord> record_;
};

TEST_F(Comparison, OrdersValuesAsTheyAreExecuted) {
  std::vector<std::string> names;
  for (const RecordEntry& entry : record_->entries()) names.push_back(entry.key.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mlp", "loss", "zero", "w", "missing"}));
}

TEST_F(Comparison, PassesWhatIsEqualAndListsZeros) {
  const auto rows = compare(all_right(), {.steps = 1, .allow_zero = {"zero", "missing"}});
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(first_wrong(rows), nullptr);
  EXPECT_TRUE(rows[2].zero);
  EXPECT_TRUE(rows[4].zero);
  EXPECT_FALSE(rows[3].zero);
}

TEST_F(Comparison, ZeroOrMissingOnBothSidesMustBeAllowedByName) {
  const auto rows = compare(all_right(), {.steps = 1, .allow_zero = {"zero"}});
  ASSERT_NE(first_wrong(rows), nullptr);
  EXPECT_EQ(first_wrong(rows)->key.name, "missing");
  EXPECT_EQ(first_wrong(compare(all_right()))->key.name, "zero");
}

TEST_F(Comparison, WhatWasNotShownIsNotCompared) {
  const auto rows = compare({whole(Kind::kGradient, "w", counted({5}))});
  EXPECT_FALSE(rows[0].passed);
  EXPECT_EQ(rows[0].note, "not compared");
  EXPECT_TRUE(rows[3].passed);
}

TEST_F(Comparison, MeasuresTheFrobeniusErrorAgainstTheTruth) {
  std::vector<Value> values = all_right();
  values[1].local = counted({5}) * 1.5;
  const auto rows = compare(values, {.steps = 1, .allow_zero = {"zero", "missing"}});
  EXPECT_EQ(first_wrong(rows), &rows[3]);
  EXPECT_EQ(worst(rows), &rows[3]);
  EXPECT_NEAR(rows[3].error, 0.5, 1e-15);
}

TEST_F(Comparison, FailsWhatIsNotFinite) {
  std::vector<Value> values = all_right();
  values[1].local = counted({5});
  values[1].local[2] = std::nan("");
  EXPECT_EQ(compare(values)[3].note, "not finite");
}

TEST_F(Comparison, FailsAGradientOnOneSideOnly) {
  std::vector<Value> values = all_right();
  values[1].local.reset();                                      // missing here
  values[2].local = counted({2});                               // zero there
  values[3] = whole(Kind::kGradient, "missing", counted({2}));  // missing there
  const auto rows = compare(values, {.steps = 1, .allow_zero = {"w", "zero", "missing"}});
  EXPECT_FALSE(rows[2].passed);
  EXPECT_FALSE(rows[3].passed);
  EXPECT_FALSE(rows[4].passed);
}

TEST_F(Comparison, RefusesValuesThatTheRecordDoesNotHave) {
  EXPECT_THROW(compare({whole(Kind::kOutput, "attention", counted({1}))}), ContractError);
  EXPECT_THROW(compare({whole(Kind::kGradient, "w", counted({6}))}), ContractError);
  EXPECT_EQ(compare({whole(Kind::kGradient, "w", counted({4}))})[3].note,
            "4 elements were compared, there are 5");
}

// Rows 0-1, 2-3 of the output on ranks 0 and 1 with its columns in another order; the gradient in
// uneven shards, one empty; copies of it on rank 2.
std::vector<Row> compare_on_three_ranks(const RunRecord& record, double copy_factor,
                                        bool leave_gap) {
  std::vector<Row> rows;
  run_ranks(3, [&](const CommPtr& comm) {
    RunComparison comparison(record, {.steps = 1, .kinds = {Kind::kOutput, Kind::kGradient}});
    const int rank = comm->rank();
    const at::Tensor output = counted({4, 3});
    const at::Tensor gradient = counted({5});
    if (rank < 2) {
      const at::Tensor mine = output.slice(0, 2 * rank, 2 * rank + 2);
      const at::Tensor turned = at::cat({mine.slice(1, 2, 3), mine.slice(1, 0, 2)}, 1);
      comparison.take(
          value(Kind::kOutput, "mlp", turned, {{{2 * rank, 2 * rank + 2}}, {{2, 3}, {0, 2}}}));
    }
    if (rank == 0)
      comparison.take(value(Kind::kGradient, "w", gradient.slice(0, 0, 3), {{{0, 3}}}));
    if (rank == 1 && !leave_gap)
      comparison.take(value(Kind::kGradient, "w", gradient.slice(0, 3, 5), {{{3, 5}}}));
    if (rank == 2)
      comparison.take(
          value(Kind::kGradient, "w", gradient.slice(0, 3, 5) * copy_factor, {{{3, 5}}}, false));
    const auto found = comparison.finish(*comm);
    if (rank == 0) rows = found;
  });
  return rows;
}

TEST_F(Comparison, JoinsThePartsOfSeveralRanks) {
  const auto rows = compare_on_three_ranks(*record_, 1, false);
  EXPECT_TRUE(rows[0].passed) << rows[0].note << rows[0].error;
  EXPECT_EQ(rows[0].elements, 12);
  EXPECT_TRUE(rows[2].passed) << rows[2].note << rows[2].error;
}

TEST_F(Comparison, FailsACopyThatDiffersFromItsOwner) {
  const auto rows = compare_on_three_ranks(*record_, 1.25, false);
  EXPECT_FALSE(rows[2].passed);
  EXPECT_NEAR(rows[2].error, 0.25 * std::sqrt(41.0 / 55.0), 1e-12);  // 4, 5 of 1 to 5
}

TEST_F(Comparison, FailsWhereElementsWereNotCompared) {
  const auto rows = compare_on_three_ranks(*record_, 1, true);
  EXPECT_FALSE(rows[2].passed);
  EXPECT_EQ(rows[2].note, "3 elements were compared, there are 5");
}

}  // namespace
}  // namespace shardproof
