#include "parallel/all_to_all_dispatcher.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>

#include "comm/threads/run_ranks.h"

namespace shardproof {
namespace {

constexpr int64_t kExperts = 5, kHidden = 3, kTopK = 2;

// Rank r's tokens and routes; expert 3 is nobody's.
Routes routes_of(int64_t rank, int64_t count) {
  const at::Tensor at = at::arange(count * kHidden, at::kDouble).view({count, kHidden});
  const at::Tensor first = at::arange(count).mul(2).add(rank).remainder(kExperts - 2);
  const at::Tensor second = at::full({count}, 4, at::kLong);
  return {at::sin(at * 1.3 + static_cast<double>(rank)).requires_grad_(),
          at::stack({first, second}, 1),
          at::cos(at::arange(count * kTopK, at::kDouble).view({count, kTopK}) + 0.3 * rank)
              .requires_grad_()};
}

at::Tensor scales() { return at::arange(1, kExperts + 1, at::kDouble) * 0.7; }

// Every expert multiplies by its own constant.
RunExperts multiply(const at::Tensor& scale, int64_t first) {
  return [=](const at::Tensor& rows, const at::Tensor& experts) {
    return rows * scale.index_select(0, experts - first).unsqueeze(1);
  };
}

struct Dense {
  at::Tensor out, token_grad, weight_grad, scale_grad;
};

Dense dense(int64_t rank, int64_t count) {
  const Routes routes = routes_of(rank, count);
  const at::Tensor scale = scales().requires_grad_();
  const at::Tensor chosen = scale.index_select(0, routes.experts.reshape({count * kTopK}));
  const at::Tensor out =
      (routes.tokens.unsqueeze(1) * chosen.view({count, kTopK, 1}) * routes.weights.unsqueeze(-1))
          .sum(1);
  out.square().sum().backward();
  return {out.detach(), routes.tokens.grad(), routes.weights.grad(), scale.grad()};
}

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).norm().item<double>(); }

// Ranks with all kinds of numbers of tokens, more ranks than experts among them: output and all
// gradients as if every expert were everywhere; the constants' gradients summed over all tokens.
TEST(AllToAllDispatcher, EqualsExpertsThatAreEverywhere) {
  const std::vector<int64_t> counts = {4, 0, 1, 7, 2, 0};
  for (const int ranks : {1, 2, 3, 6}) {
    at::Tensor scale_grad = at::zeros({kExperts}, at::kDouble);
    for (int r = 0; r < ranks; ++r) scale_grad += dense(r, counts[r]).scale_grad;
    std::mutex mutex;
    at::Tensor gathered = at::zeros({kExperts}, at::kDouble);
    run_ranks(ranks, [&](CommPtr world) {
      const int rank = world->rank();
      const Intervals held = cut_intervals({}, kExperts, ranks, rank);
      const int64_t first = held.empty() ? 0 : held[0].begin;
      const int64_t own = total_size(held);
      const at::Tensor scale = scales().narrow(0, first, own).clone().requires_grad_();
      AllToAllDispatcher dispatcher(world, {}, kExperts, "experts");
      for (int round = 0; round < 2; ++round) {  // gradients must not lean on fresh memory
        scale.mutable_grad().reset();
        const Routes routes = routes_of(rank, counts[rank]);
        const at::Tensor out = dispatcher.combine(routes, multiply(scale, first));
        out.square().sum().backward();
        const Dense want = dense(rank, counts[rank]);
        EXPECT_LT(distance(out, want.out), 1e-13);
        EXPECT_LT(distance(routes.tokens.grad(), want.token_grad), 1e-13);
        EXPECT_LT(distance(routes.weights.grad(), want.weight_grad), 1e-13);
      }
      ASSERT_TRUE(scale.grad().defined()) << "rank " << rank << " of " << ranks;
      const std::lock_guard lock(mutex);
      gathered.narrow(0, first, own).copy_(scale.grad());
    });
    EXPECT_LT(distance(gathered, scale_grad), 1e-12) << ranks;
    EXPECT_EQ(gathered[3].item<double>(), 0) << "nobody routed to expert 3";
  }
}

}  // namespace
}  // namespace shardproof
