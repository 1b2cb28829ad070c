// Linear, RmsNorm and GatedMlp against values computed by hand or from their formulas.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/rms_norm.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;

TEST(Linear, MultipliesByTheTransposedWeightAndAddsTheBias) {
  Linear linear({.in = 2, .out = 3, .bias = true});
  linear.finish();
  testing::place_whole(linear,
                       {{"weight", at::tensor({1., 2., 3., 4., 5., 6.}, at::kDouble).view({3, 2})},
                        {"bias", at::tensor({10., 20., 30.}, at::kDouble)}});

  const at::Tensor output = linear(at::tensor({1., -1.}, at::kDouble).view({1, 1, 2}));

  EXPECT_TRUE(at::equal(output, at::tensor({9., 19., 29.}, at::kDouble).view({1, 1, 3})));
}

TEST(Linear, PartsOfWidthZeroWorkAndAreReachedByTheGraph) {
  for (const bool empty_in : {true, false}) {
    Linear linear({.in = 2, .out = 3, .bias = true});
    linear.finish();
    const auto whole = testing::whole_values(linear);
    testing::place(linear, whole, [&](const Parameter& parameter) {
      Region region = whole_region(parameter.shape());
      if (empty_in && region.size() == 2) region[1] = {};
      if (!empty_in) region[0] = {};
      return region;
    });
    const at::Tensor input = at::ones({2, 4, empty_in ? 0 : 2}, at::kDouble).requires_grad_();

    const at::Tensor output = linear(input);
    output.sum().backward();

    EXPECT_EQ(output.sizes().vec(), (std::vector<int64_t>{2, 4, empty_in ? 3 : 0}));
    if (empty_in) {
      EXPECT_TRUE(at::equal(output[1][3], whole.at("bias")));
      EXPECT_TRUE(at::equal(linear.bias()->view().grad(), at::full({3}, 8., at::kDouble)));
    } else {
      EXPECT_TRUE(at::equal(input.grad(), at::zeros({2, 4, 2}, at::kDouble)));
    }
    ASSERT_TRUE(linear.weight()->view().grad().defined());
    EXPECT_EQ(linear.weight()->view().grad().numel(), 0);
    EXPECT_TRUE(input.grad().defined());
  }
}

TEST(Linear, WrongWidthAndMissingPlacementAreNamed) {
  Linear linear({.in = 2, .out = 3});
  EXPECT_THROW(linear(at::ones({1, 2})), ContractError);
  linear.parameter("weight")->place_whole(at::kFloat);
  EXPECT_THROW(linear(at::ones({1, 3})), ContractError);
  EXPECT_THROW(Linear({.in = 3, .out = 3, .weight = linear.weight()}), ContractError);
}

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  RmsNorm norm(2, 0.0);
  norm.finish();
  testing::place_whole(norm, {{"weight", at::tensor({2., 3.}, at::kDouble)}});

  const at::Tensor output = norm(at::tensor({1., 7.}, at::kDouble).view({1, 2}));  // mean square 25

  EXPECT_LT(relative_error(output, at::tensor({0.4, 4.2}, at::kDouble).view({1, 2})), 1e-15);
}

TEST(RmsNorm, HalfTypesAreComputedInFloat32) {
  RmsNorm norm(64, 1e-5);
  norm.weight()->place_whole(at::kBFloat16);
  const at::Tensor weight = values({64}, 3).to(at::kBFloat16);
  norm.weight()->kept().copy_(weight);
  const at::Tensor x = (values({2, 64}, 5) * 30).to(at::kBFloat16);

  const at::Tensor output = norm(x);

  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor normed = wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-5);
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(output, weight * normed.to(at::kBFloat16)));
}

TEST(RmsNorm, OnePlusWeightIsMultipliedBeforeItIsRounded) {
  RmsNorm norm({.width = 64, .eps = 1e-5, .scale = RmsNormOptions::Scale::kOnePlusWeight});
  norm.weight()->place_whole(at::kBFloat16);
  const at::Tensor weight = values({64}, 3).to(at::kBFloat16);
  norm.weight()->kept().copy_(weight);
  const at::Tensor x = (values({2, 64}, 5) * 30).to(at::kBFloat16);

  const at::Tensor output = norm(x);

  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor normed = wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-5);
  EXPECT_TRUE(at::equal(output, (normed * (1.0 + weight.to(at::kFloat))).to(at::kBFloat16)));
  EXPECT_FALSE(at::equal(output, (1.0 + weight) * normed.to(at::kBFloat16)));
  EXPECT_EQ(norm.initial_values("weight").kind, InitialValues::Kind::kZeros);
}

TEST(PackedGatedMlp, IsTheSeparateOneWithTheSameWeights) {
  const GatedMlpOptions options = {
      .hidden = 4, .width = 7, .bias = true, .activation = Activation::kGeluTanh};
  GatedMlp named(options);
  named.finish();
  const testing::Whole whole = testing::whole_values(named);
  testing::Whole packed_whole = whole;
  for (const std::string kind : {"weight", "bias"})
    packed_whole["gate_up_proj." + kind] =
        at::cat({whole.at("gate_proj." + kind), whole.at("up_proj." + kind)});
  const at::Tensor x = values({2, 3, 4}, 9);
  const auto region = [](int64_t ranks, int64_t rank) {
    return [=](const Parameter& parameter) {
      Region region = whole_region(parameter.shape());
      if (parameter.name() == "down_proj.bias") return region;
      const size_t dim = parameter.name() == "down_proj.weight" ? 1 : 0;
      region[dim] = cut_intervals(parameter.cut(dim), parameter.shape()[dim], ranks, rank);
      return region;
    };
  };
  for (const int64_t ranks : {1, 2, 3, 9}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      GatedMlp separate(options);
      separate.finish();
      testing::place(separate, whole, region(ranks, rank));
      PackedGatedMlp packed(options);
      packed.finish();
      testing::place(packed, packed_whole, region(ranks, rank));
      EXPECT_TRUE(at::allclose(packed(x), separate(x), 1e-14, 1e-14)) << rank << " of " << ranks;
    }
  }
}

TEST(PackedGatedMlp, HalvesThatAreNotCutAlikeAreRefused) {
  PackedGatedMlp packed({.hidden = 4, .width = 7});
  packed.finish();
  testing::place(packed, testing::whole_values(packed), [](const Parameter& parameter) {
    Region region = whole_region(parameter.shape());
    if (parameter.name() == "gate_up_proj.weight") region[0] = {{0, 6}};  // gate alone
    return region;
  });
  EXPECT_THROW(packed(values({2, 3, 4}, 9)), ContractError);
}

TEST(Activation, GeluIsItsTanhApproximation) {
  const at::Tensor x = values({9}, 4) * 2;
  const at::Tensor inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3));
  EXPECT_LT(relative_error(activate(Activation::kGeluTanh, x), 0.5 * x * (1 + at::tanh(inner))),
            1e-14);
}

TEST(GatedMlp, PartsOfItsWidthSumToTheWhole) {
  const at::Tensor x = values({2, 3, 4}, 9);
  const auto run = [&](int64_t ranks, int64_t rank, testing::Whole& whole) {
    GatedMlp mlp(4, 7, /*bias=*/false);
    mlp.finish();
    whole = testing::whole_values(mlp);
    testing::place(mlp, whole, [&](const Parameter& parameter) {
      Region region = whole_region(parameter.shape());
      const size_t dim = parameter.name() == "down_proj.weight" ? 1 : 0;
      region[dim] = cut_intervals(parameter.cut(dim), 7, ranks, rank);
      return region;
    });
    return mlp(x).detach();
  };
  testing::Whole whole;
  const at::Tensor truth = run(1, 0, whole);
  const at::Tensor gate = at::matmul(x, whole["gate_proj.weight"].t());
  const at::Tensor up = at::matmul(x, whole["up_proj.weight"].t());
  const at::Tensor formula =
      at::matmul(gate / (1 + at::exp(-gate)) * up, whole["down_proj.weight"].t());
  EXPECT_LT(relative_error(truth, formula), 1e-14);
  for (const int64_t ranks : {2, 3, 9}) {
    at::Tensor sum = at::zeros_like(truth);
    for (int64_t rank = 0; rank < ranks; ++rank) sum += run(ranks, rank, whole);
    EXPECT_LT(relative_error(sum, truth), 1e-14) << ranks;
  }
}

}  // namespace
}  // namespace shardproof
