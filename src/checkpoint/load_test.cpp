#include "checkpoint/load.h"

#include "checkpoint/testing.h"
#include "io/mxfp4.h"
#include "nn/linear.h"

namespace shardproof {
namespace {

using testing::Bag;
using testing::NamedList;
using testing::values;

// A weight of 5 x 4, a bias, and a second layer whose weight is the first one's.
class Tied final : public Module {
 public:
  Tied() : Module("Tied", {.inputs = {{"x"}}}) {
    auto first = add_child("first", std::make_shared<Linear>(LinearOptions{4, 5, true}));
    add_child("second", std::make_shared<Linear>(
                            LinearOptions{.in = 4, .out = 5, .weight = first->weight()}));
    finish();
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override { return {{"output", inputs.at("x")}}; }
};

class LoadTest : public testing::FileTest {};

TEST_F(LoadTest, ReadsTheBoxesOfTheRegionAndConverts) {
  const at::Tensor weight = values({5, 4}, 1).to(at::kFloat);
  const at::Tensor bias = values({5}, 2).to(at::kFloat);
  const CheckpointFiles files = write({{"first.weight", weight}, {"first.bias", bias}});
  const Region region = {{{3, 5}, {0, 1}}, {{0, 1}, {2, 4}}};  // four boxes
  const Region none = {{}};
  Tied module;
  module.all_parameters()[0]->place(at::zeros({3, 3}, at::kDouble), region,
                                    at::zeros({3, 3}, at::kDouble), region);
  module.all_parameters()[1]->place(at::zeros({0}, at::kDouble), none, at::zeros({0}, at::kDouble),
                                    none);

  load_parameters(module, files);

  EXPECT_TRUE(
      at::equal(module.all_parameters()[0]->kept(), testing::take(weight, region).to(at::kDouble)));
  EXPECT_FALSE(module.all_parameters()[0]->kept().requires_grad());
}

TEST_F(LoadTest, WholeParametersReachTheView) {
  const at::Tensor weight = values({5, 4}, 1);
  Tied module;
  for (const ParamPtr& parameter : module.all_parameters()) parameter->place_whole(at::kDouble);

  // Under the tied name only; an extra tensor is allowed by a pattern.
  load_parameters(module,
                  write({{"second.weight", weight},
                         {"first.bias", values({5}, 2)},
                         {"layers.3.inv_freq", at::ones({2})}}),
                  {.rules = {}, .ignored = {"layers.*.inv_freq"}});

  EXPECT_TRUE(at::equal(module.all_parameters()[0]->view().detach(), weight));
}

TEST_F(LoadTest, WhatDoesNotFitIsNamed) {
  const at::Tensor weight = values({5, 4}, 1);
  const at::Tensor bias = values({5}, 2);
  Tied module;
  for (const ParamPtr& parameter : module.all_parameters()) parameter->place_whole(at::kDouble);
  EXPECT_CONTAINS(refusal(module, {{"first.weight", weight}}), "'first.bias'");
  EXPECT_CONTAINS(refusal(module, {{"first.bias", bias}}), "'first.weight' or 'second.weight'");
  EXPECT_CONTAINS(refusal(module, {{"first.weight", weight.t()}, {"first.bias", bias}}),
                  "'first.weight' has shape [4, 5], the model's has [5, 4]");
  EXPECT_CONTAINS(
      refusal(module,
              {{"first.weight", weight}, {"first.bias", bias}, {"a", bias}, {"third.bias", bias}}),
      "'a' (and 1 more)");
}

// Loads the shards of all coordinates of a tp axis, cut along `dim`, and puts them together again;
// what no shard holds stays NaN.
at::Tensor gathered(const CheckpointFiles& files, const WeightMap& map, const std::string& name,
                    const std::vector<int64_t>& shape, const Placement& placement, int64_t ranks) {
  at::Tensor whole = at::full(shape, NAN, at::kDouble);
  const MeshShape mesh({{"axis", ranks}});
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Bag module({{name, shape}});
    const ParamPtr parameter = module.all_parameters()[0];
    const Region region = region_of(shape, {{"axis", placement}}, mesh, rank);
    testing::place(*parameter, region, at::kDouble);
    std::vector<std::pair<int64_t, int64_t>> calls;
    load_parameters(module, files, map,
                    [&](int64_t done, int64_t total) { calls.emplace_back(done, total); });
    const int64_t own = parameter->kept().numel() * 8;
    EXPECT_EQ(calls, (std::vector<std::pair<int64_t, int64_t>>{{own, own}}));
    EXPECT_FALSE(parameter->kept().isnan().any().item<bool>());
    for (int64_t i = 0; const Interval& interval : region[static_cast<size_t>(placement.dim)]) {
      whole.narrow(placement.dim, interval.begin, interval.size())
          .copy_(parameter->kept().narrow(placement.dim, i, interval.size()));
      i += interval.size();
    }
  }
  return whole;
}

// GPT-OSS experts of 6 blocks, cut by 4: shards begin in the middle of blocks.
TEST_F(LoadTest, ShardsOfMxfp4NeedNotFallOnBlocks) {
  std::mt19937 random(2);
  constexpr int64_t kExperts = 3, kHidden = 64, kWidth = 192;
  const NamedList up = testing::mxfp4_pair("up", {kExperts, 2 * kWidth, kHidden}, random);
  const NamedList down = testing::mxfp4_pair("down", {kExperts, kHidden, kWidth}, random);
  const auto rule = [](const std::string& name) {
    return WeightMap{.rules = {{name, {weight::transpose(weight::mxfp4(name))}}}, .ignored = {}};
  };
  const auto whole = [](const NamedList& pair) {
    return decode_mxfp4(pair[0].second, pair[1].second, at::kDouble).transpose(1, 2);
  };
  for (const int64_t ranks : {2, 4, 5}) {
    SCOPED_TRACE(ranks);
    EXPECT_TRUE(at::equal(gathered(write(up), rule("up"), "up", {kExperts, kHidden, 2 * kWidth},
                                   shard(2, Cut::units(2 * kWidth, 2)), ranks),
                          whole(up)));
    EXPECT_TRUE(at::equal(
        gathered(write(down), rule("down"), "down", {kExperts, kWidth, kHidden}, shard(1), ranks),
        whole(down)));
    EXPECT_TRUE(at::equal(
        gathered(write(up), rule("up"), "up", {kExperts, kHidden, 2 * kWidth}, shard(0), ranks),
        whole(up)));
  }
}

// Four experts over three ranks: 2, 2 and none, which is loaded and not missing.
TEST_F(LoadTest, EmptyShardsOfStackedExpertsAreLoaded) {
  NamedList tensors;
  for (int64_t e = 0; e < 4; ++e)
    tensors.emplace_back(fmt::format("experts.{}.down", e), values({3, 5}, e));
  const WeightMap map = {
      .rules = {{"experts.down", {weight::stack(weight::tensor("experts.*.down"))}}},
      .ignored = {}};

  const at::Tensor whole =
      gathered(write(tensors), map, "experts.down", {4, 3, 5}, shard(0, Cut::units(4, 2)), 3);

  EXPECT_TRUE(at::equal(whole[3], values({3, 5}, 3)));
  EXPECT_TRUE(at::equal(whole[0], values({3, 5}, 0)));
}

TEST_F(LoadTest, ParametersMustBePlaced) {
  Tied module;
  const CheckpointFiles files = write({{"first.bias", values({5}, 2)}});
  EXPECT_THROW(load_parameters(module, files), ContractError);
}

}  // namespace
}  // namespace shardproof
