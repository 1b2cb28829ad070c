// Both kernels against each other and a product an expert.
#include "nn/grouped_matmul.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;
using Counts = std::vector<int64_t>;

struct Result {
  at::Tensor output, rows_grad, matrices_grad;
};

// Matrices [experts, out, in] in memory, used as [experts, in, out]; `times` backwards.
Result run(at::ScalarType type, const Counts& counts, int64_t in, int64_t out, GroupedKernel kernel,
           int times = 1) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto experts = static_cast<int64_t>(counts.size());
  const at::Tensor rows = values({total, in}, 1).to(type).requires_grad_();
  const at::Tensor stacked = values({experts, out, in}, 2).to(type).requires_grad_();
  Result result;
  for (int i = 0; i < times; ++i) {
    result.output = grouped_matmul(rows, stacked.transpose(1, 2), counts, kernel);
    // An expanded gradient: strides of zero.
    (result.output.sum() + (result.output * values({total, out}, 3).to(type)).sum()).backward();
  }
  result.output = result.output.detach();
  result.rows_grad = rows.grad();
  result.matrices_grad = stacked.grad();
  return result;
}

TEST(GroupedMatmul, TheLoopIsOneProductAnExpert) {
  const Result result = run(at::kDouble, {2, 0, 3}, 5, 7, GroupedKernel::kLoop);
  const at::Tensor rows = values({5, 5}, 1);
  const at::Tensor stacked = values({3, 7, 5}, 2);
  const at::Tensor truth = at::cat(
      {rows.narrow(0, 0, 2).matmul(stacked[0].t()), rows.narrow(0, 2, 3).matmul(stacked[2].t())});
  const at::Tensor grad = values({5, 7}, 3) + 1;
  EXPECT_LT(relative_error(result.output, truth), 1e-15);
  EXPECT_LT(
      relative_error(result.rows_grad.narrow(0, 2, 3), grad.narrow(0, 2, 3).matmul(stacked[2])),
      1e-14);
  EXPECT_LT(relative_error(result.matrices_grad[0],
                           grad.narrow(0, 0, 2).t().matmul(rows.narrow(0, 0, 2))),
            1e-14);
  EXPECT_TRUE(at::equal(result.matrices_grad[1], at::zeros({7, 5}, at::kDouble)));
}

// Twice, because memory that was never written is often zero the first time.
TEST(GroupedMatmul, BothKernelsGiveTheSame) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double allowed = type == at::kFloat ? 1e-6 : 1e-2;
    for (const Counts& counts : {Counts{2, 0, 3}, {0, 0, 4}, {5, 0, 0}, {1, 1, 1}}) {
      for (const int times : {1, 2}) {
        const Result loop = run(type, counts, 8, 16, GroupedKernel::kLoop, times);
        const Result grouped = run(type, counts, 8, 16, GroupedKernel::kGrouped, times);
        EXPECT_LT(relative_error(grouped.output.to(at::kDouble), loop.output.to(at::kDouble)),
                  allowed);
        EXPECT_LT(relative_error(grouped.rows_grad.to(at::kDouble), loop.rows_grad.to(at::kDouble)),
                  allowed);
        EXPECT_LT(relative_error(grouped.matrices_grad.to(at::kDouble),
                                 loop.matrices_grad.to(at::kDouble)),
                  allowed);
        for (size_t expert = 0; expert < counts.size(); ++expert) {
          if (counts[expert] > 0) continue;
          const at::Tensor grad = grouped.matrices_grad[static_cast<int64_t>(expert)];
          EXPECT_TRUE(at::equal(grad, at::zeros_like(grad)));
        }
      }
    }
  }
}

TEST(GroupedMatmul, TheKernelFollowsFromTypeAndStrides) {
  const auto kernel = [](at::ScalarType type, int64_t rows, int64_t in, int64_t out) {
    return grouped_kernel_for(at::ones({rows, in}, type),
                              at::ones({3, out, in}, type).transpose(1, 2));
  };
  EXPECT_EQ(kernel(at::kFloat, 5, 8, 4), GroupedKernel::kGrouped);
  EXPECT_EQ(kernel(at::kBFloat16, 5, 8, 16), GroupedKernel::kGrouped);
  EXPECT_EQ(kernel(at::kDouble, 5, 8, 4), GroupedKernel::kLoop);
  EXPECT_EQ(kernel(at::kFloat, 5, 7, 4), GroupedKernel::kLoop);
  EXPECT_EQ(kernel(at::kFloat, 5, 8, 5), GroupedKernel::kLoop);
  EXPECT_EQ(kernel(at::kBFloat16, 5, 8, 4), GroupedKernel::kLoop);
  EXPECT_EQ(kernel(at::kFloat, 0, 8, 4), GroupedKernel::kLoop);
}

TEST(GroupedMatmul, NoRowsReachTheMatrices) {
  const Result result = run(at::kFloat, {0, 0}, 3, 2, GroupedKernel::kLoop);
  EXPECT_EQ(result.output.sizes().vec(), (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(result.rows_grad.defined());
  EXPECT_TRUE(at::equal(result.matrices_grad, at::zeros({2, 2, 3})));
}

TEST(GroupedMatmul, CountsMustAddUp) {
  const at::Tensor rows = at::ones({3, 2});
  const at::Tensor matrices = at::ones({2, 2, 2});
  EXPECT_THROW(grouped_matmul(rows, matrices, Counts{1, 1}), ContractError);
  EXPECT_THROW(grouped_matmul(rows, matrices, Counts{3}), ContractError);
}

}  // namespace
}  // namespace shardproof
