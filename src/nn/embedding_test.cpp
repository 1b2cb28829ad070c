#include "nn/embedding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::values;

constexpr int64_t kRows = 7;
constexpr int64_t kWidth = 3;

struct Result {
  at::Tensor output, grad;
};

Result run(const Region& held, const at::Tensor& ids, const at::Tensor& weights,
           std::optional<int64_t> padding = {}) {
  Embedding embedding({.rows = kRows, .width = kWidth, .padding_row = padding});
  embedding.finish();
  testing::place(embedding, {{"weight", values({kRows, kWidth}, 1)}},
                 [&](const Parameter&) { return held; });
  const at::Tensor output = embedding(ids);
  (output * weights).sum().backward();
  return {output.detach(), embedding.weight()->view().grad()};
}

const std::vector<int64_t> kIdShape = {2, 4};
at::Tensor some_ids() { return at::tensor({6, 0, 3, 3, 1, 6, 5, 3}, at::kLong).view(kIdShape); }

TEST(Embedding, EqualsTheLookupInTheWholeTable) {
  const at::Tensor weights = values({2, 4, kWidth}, 2);
  at::Tensor table = values({kRows, kWidth}, 1).requires_grad_();
  const at::Tensor truth = at::embedding(table, some_ids());
  (truth * weights).sum().backward();

  const Result result = run(whole_region({kRows, kWidth}), some_ids(), weights);

  EXPECT_TRUE(at::equal(result.output, truth));
  EXPECT_TRUE(at::allclose(result.grad, table.grad(), 1e-15, 1e-15));
}

TEST(Embedding, PartialLookupsSumToTheWhole) {
  const at::Tensor weights = values({2, 4, kWidth}, 2);
  const Result truth = run(whole_region({kRows, kWidth}), some_ids(), weights);
  // Several intervals out of order, one row, and no rows at all.
  const std::vector<Intervals> parts = {{{5, 7}, {0, 1}}, {{1, 2}}, {}, {{3, 5}, {2, 3}}};

  at::Tensor sum = at::zeros_like(truth.output);
  at::Tensor grad = at::zeros({kRows, kWidth}, at::kDouble);
  for (const Intervals& rows : parts) {
    const Region held = {rows, {{0, kWidth}}};
    const Result part = run(held, some_ids(), weights);
    sum += part.output;
    ASSERT_TRUE(part.grad.defined());
    ASSERT_EQ(part.grad.sizes().vec(), local_shape(held));
    testing::add_into(grad, held, part.grad);
  }

  EXPECT_TRUE(at::equal(sum, truth.output));
  EXPECT_TRUE(at::equal(grad, truth.grad));
}

TEST(Embedding, ColumnsMayBeCutToo) {
  const at::Tensor truth = at::embedding(values({kRows, kWidth}, 1), some_ids());

  const Result part = run({{{0, kRows}}, {{1, 3}}}, some_ids(), at::ones({2, 4, 2}, at::kDouble));

  EXPECT_TRUE(at::equal(part.output, truth.narrow(2, 1, 2)));
}

TEST(Embedding, PaddingRowIsReadButGetsNoGradient) {
  const at::Tensor weights = values({2, 4, kWidth}, 2);
  const Result plain = run(whole_region({kRows, kWidth}), some_ids(), weights);

  const Result padded = run(whole_region({kRows, kWidth}), some_ids(), weights, /*padding=*/3);

  EXPECT_TRUE(at::equal(padded.output, plain.output));
  at::Tensor expected = plain.grad.clone();
  expected[3].zero_();
  EXPECT_TRUE(at::equal(padded.grad, expected));
}

TEST(Embedding, NoTokensAndBadTokens) {
  const Region whole = whole_region({kRows, kWidth});
  const Result none =
      run(whole, at::zeros({2, 0}, at::kLong), at::ones({2, 0, kWidth}, at::kDouble));
  EXPECT_EQ(none.output.sizes().vec(), (std::vector<int64_t>{2, 0, kWidth}));
  EXPECT_EQ(none.grad.abs().sum().item<double>(), 0);
  const at::Tensor weights = at::ones({1, kWidth}, at::kDouble);
  EXPECT_THROW(run(whole, at::full({1}, kRows, at::kLong), weights), InputError);
  EXPECT_THROW(run(whole, at::full({1}, -1, at::kLong), weights), InputError);
  EXPECT_THROW(run(whole, at::zeros({1}, at::kInt), weights), ContractError);
}

TEST(Embedding, TheScaleIsRoundedToFloat32AndThenToTheTypeOfTheWeight) {
  const double scale = std::sqrt(20.0);
  const at::Tensor ids = at::tensor({2, 0}, at::kLong);
  for (const auto type : {at::kDouble, at::kBFloat16}) {
    Embedding embedding({.rows = 3, .width = 4, .scale = scale});
    embedding.parameter("weight")->place_whole(type);
    const at::Tensor weight = testing::values({3, 4}, 6).to(type);
    embedding.parameter("weight")->kept().copy_(weight);
    const at::Tensor rounded = at::tensor(static_cast<float>(scale)).to(type);
    EXPECT_TRUE(at::equal(embedding(ids), weight.index_select(0, ids) * rounded));
  }
}

}  // namespace
}  // namespace shardproof
