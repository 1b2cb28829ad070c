// The router against hand-computed choices and weights.
#include "nn/router.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;
using testing::Whole;

// Tokens are their own logits: the weight is the unit matrix.
NamedTensors route(const RouterOptions& options, const at::Tensor& logits, Whole biases = {}) {
  TopKRouter router(options);
  router.finish();
  biases["weight"] = at::eye(options.experts, at::kDouble);
  testing::place_whole(router, biases);
  return router.call({logits});
}

RouterOptions of_four(RouterOptions::Scoring scoring, int64_t top_k) {
  return {.hidden = 4, .experts = 4, .top_k = top_k, .scoring = scoring};
}

at::Tensor row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).view({1, -1});
}
at::Tensor ids(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong).view({1, -1});
}

TEST(Router, SoftmaxOverAllThenTheLargest) {
  RouterOptions options = of_four(RouterOptions::Scoring::kSoftmax, 2);
  const at::Tensor logits = at::log(row({1, 4, 2, 3}));
  const NamedTensors plain = route(options, logits);
  EXPECT_TRUE(at::equal(plain.at("top_k_index"), ids({1, 3})));
  EXPECT_LT(relative_error(plain.at("top_k_weights").detach(), row({0.4, 0.3})), 1e-14);
  EXPECT_LT(relative_error(plain.at("logits").detach(), logits), 1e-15);
  options.normalize = true;
  EXPECT_LT(
      relative_error(route(options, logits).at("top_k_weights").detach(), row({4. / 7, 3. / 7})),
      1e-14);
}

TEST(Router, TheLargestThenSoftmaxOverThem) {
  RouterOptions options = of_four(RouterOptions::Scoring::kTopKSoftmax, 2);
  options.bias = true;
  const NamedTensors routed =
      route(options, at::log(row({1, 4, 2, 3})), {{"bias", at::log(row({8, 1, 1, 1})[0])}});
  EXPECT_TRUE(at::equal(routed.at("top_k_index"), ids({0, 1})));
  EXPECT_LT(relative_error(routed.at("top_k_weights").detach(), row({8. / 12, 4. / 12})), 1e-14);
}

TEST(Router, SigmoidChoosesByTheCorrectedAndWeighsByTheUncorrected) {
  RouterOptions options = {.hidden = 6,
                           .experts = 6,
                           .top_k = 2,
                           .scoring = RouterOptions::Scoring::kSigmoid,
                           .normalize = true,
                           .wide_logits = true,
                           .weights = RouterOptions::Type::kWide,
                           .scale = 2.5,
                           .groups = 3,
                           .top_groups = 1};
  // Scores .1 .2 | .6 .1 | .3 .3; the largest, .6, is in a group whose two best are .7 together;
  // the correction lifts the last group to .8.
  const at::Tensor logits = at::logit(row({.1, .2, .6, .1, .3, .3}));
  const Whole correction = {{"e_score_correction_bias", row({0, 0, 0, 0, .05, .15})[0]}};
  const NamedTensors routed = route(options, logits, correction);
  EXPECT_TRUE(at::equal(routed.at("top_k_index"), ids({5, 4})));
  EXPECT_LT(relative_error(routed.at("top_k_weights").detach(), row({1.25, 1.25})), 1e-14);
  options.top_groups = 2;
  EXPECT_TRUE(at::equal(route(options, logits, correction).at("top_k_index"), ids({2, 5})));
}

TEST(Router, TiesGoToTheLowestIndexForAnySplitOfTheBatch) {
  for (const auto scoring :
       {RouterOptions::Scoring::kSoftmax, RouterOptions::Scoring::kTopKSoftmax}) {
    RouterOptions options = {.hidden = 40, .experts = 40, .top_k = 3, .scoring = scoring};
    const at::Tensor logits = at::zeros({7, 40}, at::kDouble);
    logits[3][39] = 1;
    const at::Tensor index = route(options, logits).at("top_k_index");
    for (int64_t token = 0; token < 7; ++token) {
      EXPECT_TRUE(at::equal(index[token], ids(token == 3 ? std::vector<int64_t>{39, 0, 1}
                                                         : std::vector<int64_t>{0, 1, 2})[0]));
      EXPECT_TRUE(
          at::equal(route(options, logits.narrow(0, token, 1)).at("top_k_index")[0], index[token]));
    }
  }
}

TEST(Router, LeadingDimsStayAndNoTokensWork) {
  const RouterOptions options = of_four(RouterOptions::Scoring::kSoftmax, 3);
  EXPECT_EQ(route(options, values({2, 5, 4}, 1)).at("top_k_index").sizes().vec(),
            (std::vector<int64_t>{2, 5, 3}));
  TopKRouter router({.hidden = 2, .experts = 4, .top_k = 2, .bias = true});
  router.finish();
  testing::place_whole(router, testing::whole_values(router));
  const NamedTensors routed = router.call({at::zeros({2, 0, 2}, at::kDouble)});
  EXPECT_EQ(routed.at("top_k_weights").sizes().vec(), (std::vector<int64_t>{2, 0, 2}));
  routed.at("top_k_weights").sum().backward();
  EXPECT_TRUE(at::equal(router.parameter("weight")->view().grad(), at::zeros({4, 2}, at::kDouble)));
}

// By finite differences, which see nothing of how the gradient is written.
TEST(Router, GradientOfTheWeight) {
  for (const auto scoring : {RouterOptions::Scoring::kSoftmax, RouterOptions::Scoring::kTopKSoftmax,
                             RouterOptions::Scoring::kSigmoid}) {
    const RouterOptions options = {.hidden = 3,
                                   .experts = 4,
                                   .top_k = 2,
                                   .scoring = scoring,
                                   .normalize = scoring != RouterOptions::Scoring::kTopKSoftmax};
    const auto weighted = [&](const Whole& whole, at::Tensor* grad) {
      TopKRouter router(options);
      router.finish();
      testing::place_whole(router, whole);
      const at::Tensor weights = router.call({values({5, 3}, 9)}).at("top_k_weights");
      const at::Tensor sum = (weights * values({5, 2}, 8)).sum();
      if (grad != nullptr) {
        sum.backward();
        *grad = router.parameter("weight")->view().grad();
      }
      return sum.item<double>();
    };
    TopKRouter router(options);
    router.finish();
    const Whole whole = testing::whole_values(router);
    at::Tensor grad;
    weighted(whole, &grad);
    for (const auto& [i, j] : {std::pair{0, 0}, {1, 2}, {3, 1}}) {
      double ends[2] = {};
      for (const int side : {0, 1}) {
        Whole moved = whole;
        moved["weight"] = whole.at("weight").clone();
        moved["weight"][i][j] += side == 0 ? -1e-5 : 1e-5;
        ends[side] = weighted(moved, nullptr);
      }
      EXPECT_NEAR(grad[i][j].item<double>(), (ends[1] - ends[0]) / 2e-5, 1e-9);
    }
  }
}

TEST(Router, TypesAreThoseOfTransformers) {
  const auto type = [](RouterOptions options) {
    TopKRouter router(options);
    for (const ParamPtr& parameter : router.all_parameters()) parameter->place_whole(at::kBFloat16);
    router.parameter("weight")->kept().fill_(0.5);
    return router.call({at::ones({1, 4}, at::kBFloat16)}).at("top_k_weights").scalar_type();
  };
  RouterOptions options = of_four(RouterOptions::Scoring::kSoftmax, 2);
  EXPECT_EQ(type(options), at::kBFloat16);
  options.weights = RouterOptions::Type::kWide;
  EXPECT_EQ(type(options), at::kFloat);
}

TEST(Router, ImpossibleChoicesAreRefused) {
  EXPECT_THROW(TopKRouter({.hidden = 2, .experts = 3, .top_k = 4}), ContractError);
  EXPECT_THROW(TopKRouter({.hidden = 2, .experts = 5, .top_k = 2, .groups = 2}), ContractError);
}

}  // namespace
}  // namespace shardproof
