#include "nn/rotary.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

TEST(Rotary, DefaultFrequenciesArePowersOfTheBase) {
  const at::Tensor found = inverse_frequencies({.dim = 8, .theta = 10000.0});
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(found, at::tensor({1.f, 0.1f, 0.01f, 0.001f}), 1e-6, 0));
}

TEST(Rotary, LinearDividesAllFrequencies) {
  const at::Tensor plain = inverse_frequencies({.dim = 8});
  const at::Tensor found =
      inverse_frequencies({.type = RopeType::kLinear, .dim = 8, .factor = 4.0});
  EXPECT_TRUE(at::equal(found, plain / 4.0));
}

TEST(Rotary, Llama3KeepsShortStretchesLongAndBlendsBetween) {
  const RopeOptions options = {.type = RopeType::kLlama3,
                               .dim = 10,
                               .theta = 10000.0,
                               .factor = 8.0,
                               .low_freq_factor = 0.25,
                               .high_freq_factor = 1.0,
                               .original_max_position_embeddings = 16};
  const at::Tensor plain = inverse_frequencies({.dim = 10}).to(at::kDouble);
  const at::Tensor found = inverse_frequencies(options).to(at::kDouble);
  int kinds[3] = {};
  for (int64_t i = 0; i < 5; ++i) {
    const double frequency = plain[i].item<double>();
    const double wavelength = 2 * M_PI / frequency;
    double expected = frequency;
    if (wavelength > 16 / 0.25) {
      expected = frequency / 8;
      ++kinds[2];
    } else if (wavelength >= 16) {
      const double smooth = (16 / wavelength - 0.25) / 0.75;
      expected = (1 - smooth) * frequency / 8 + smooth * frequency;
      ++kinds[1];
    } else {
      ++kinds[0];
    }
    EXPECT_NEAR(found[i].item<double>() / expected, 1.0, 1e-6) << i;
  }
  EXPECT_TRUE(kinds[0] > 0 && kinds[1] > 0 && kinds[2] > 0);
}

// Values of transformers 5.24, float32.
TEST(Rotary, YarnKeepsFastStretchesSlowAndBlendsBetween) {
  RopeOptions options = {.type = RopeType::kYarn,
                         .dim = 12,
                         .theta = 150000.0,
                         .factor = 32.0,
                         .original_max_position_embeddings = 4096,
                         .truncate = false};
  const at::Tensor whole = inverse_frequencies(options);
  EXPECT_TRUE(at::equal(
      whole, at::tensor({1.0, 0.1371886283159256, 0.013777478598058224, 0.0004564839182421565,
                         1.1069358151871711e-05, 1.518590806881548e-06},
                        at::kFloat)));
  options.truncate = true;
  EXPECT_TRUE(
      at::equal(inverse_frequencies(options),
                at::tensor({1.0, 0.1371886283159256, 0.012743193656206131, 0.0009144543437287211,
                            1.1069358151871711e-05, 1.518590806881548e-06},
                           at::kFloat)));
  EXPECT_DOUBLE_EQ(yarn_magnitude(32.0), 1.3465735902799727);
  EXPECT_DOUBLE_EQ(yarn_magnitude(40.0, 1.0) / yarn_magnitude(40.0, 0.5), 1.1557219901962608);
  EXPECT_EQ(yarn_magnitude(0.5), 1.0);
}

TEST(Rotary, TheAttentionFactorIsOfBothTables) {
  RopeOptions options = {.dim = 4};
  const at::Tensor positions = at::arange(3, at::kLong).unsqueeze(0);
  const NamedTensors plain =
      RotaryEmbedding(options).call({at::zeros({1}, at::kDouble), positions});
  options.attention_factor = 1.25;
  const NamedTensors scaled =
      RotaryEmbedding(options).call({at::zeros({1}, at::kDouble), positions});
  for (const char* table : {"cos", "sin"})
    EXPECT_TRUE(at::equal(scaled.at(table), plain.at(table) * 1.25));
}

TEST(Rotary, NeighboursBecomeHalves) {
  const at::Tensor x = at::arange(12, at::kDouble).view({2, 6});
  EXPECT_TRUE(
      at::equal(halves_from_neighbours(x)[1], at::tensor({6., 8., 10., 7., 9., 11.}, at::kDouble)));
}

TEST(Rotary, WhatTheTablesDoNotCoverIsLeftAsItIs) {
  RotaryEmbedding rotary({.dim = 4, .theta = 50.0});
  const NamedTensors tables =
      rotary.call({at::zeros({1}, at::kDouble), at::arange(3, at::kLong).unsqueeze(0)});
  const at::Tensor x = testing::values({2, 5, 3, 6}, 7);
  const at::Tensor turned = rotate(x, tables.at("cos"), tables.at("sin"));
  const at::Tensor part = rotate(x.narrow(-1, 0, 4), tables.at("cos"), tables.at("sin"));
  EXPECT_TRUE(at::equal(turned.narrow(-1, 0, 4), part));
  EXPECT_TRUE(at::equal(turned.narrow(-1, 4, 2), x.narrow(-1, 4, 2)));
}

TEST(Rotary, TablesWidenTheFloat32Frequencies) {
  const RopeOptions options = {.dim = 6, .theta = 5000.0};
  RotaryEmbedding rotary(options);
  const at::Tensor positions = at::tensor({0, 3, 70}, at::kLong).view({1, 3});

  const NamedTensors tables = rotary.call({at::zeros({1}, at::kDouble), positions});

  const double angle = 70 * inverse_frequencies(options)[2].item<double>();
  EXPECT_EQ(tables.at("cos").sizes().vec(), (std::vector<int64_t>{1, 3, 6}));
  EXPECT_EQ(tables.at("cos").scalar_type(), at::kDouble);
  EXPECT_NEAR(tables.at("cos")[0][2][2].item<double>(), std::cos(angle), 1e-15);
  EXPECT_NEAR(tables.at("sin")[0][2][5].item<double>(), std::sin(angle), 1e-15);
  EXPECT_EQ(rotary.call({at::zeros({1}, at::kBFloat16), positions}).at("sin").scalar_type(),
            at::kBFloat16);
}

TEST(Rotary, RotatePairsTheHalves) {
  // A quarter turn of (1, 2 | 3, 4): first halves become minus the second, second the first.
  const at::Tensor x = at::tensor({1., 2., 3., 4.}, at::kDouble).view({1, 1, 1, 4});
  const at::Tensor zero = at::zeros({1, 1, 4}, at::kDouble);
  const at::Tensor turned = rotate(x, zero, at::ones_like(zero));
  EXPECT_TRUE(at::equal(turned.view(-1), at::tensor({-3., -4., 1., 2.}, at::kDouble)));
}

TEST(Rotary, OddDimIsRefused) { EXPECT_THROW(inverse_frequencies({.dim = 5}), ContractError); }

}  // namespace
}  // namespace shardproof
