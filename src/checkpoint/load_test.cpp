#include "checkpoint/load.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "io/safetensors_writer.h"
#include "nn/linear.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::values;
using NamedList = std::vector<std::pair<std::string, at::Tensor>>;

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

class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("shardproof_load_{}_{}.safetensors", info->name(), getpid());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  CheckpointFiles write(const NamedList& tensors) {
    write_safetensors(path_, tensors);
    return CheckpointFiles(path_);
  }

  void expect_refused(Module& module, const NamedList& tensors, const std::string& part) {
    const CheckpointFiles files = write(tensors);
    try {
      load_parameters(module, files);
      FAIL() << "nothing was thrown";
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(part), message.npos) << message;
      EXPECT_NE(message.find(path_.string()), message.npos) << message;
    }
  }

  std::filesystem::path path_;
};

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
                  {"layers.*.inv_freq"});

  EXPECT_TRUE(at::equal(module.all_parameters()[0]->view().detach(), weight));
}

TEST_F(LoadTest, WhatDoesNotFitIsNamed) {
  const at::Tensor weight = values({5, 4}, 1);
  const at::Tensor bias = values({5}, 2);
  Tied module;
  for (const ParamPtr& parameter : module.all_parameters()) parameter->place_whole(at::kDouble);
  expect_refused(module, {{"first.weight", weight}}, "'first.bias'");
  expect_refused(module, {{"first.bias", bias}}, "'first.weight' or 'second.weight'");
  expect_refused(module, {{"first.weight", weight.t()}, {"first.bias", bias}},
                 "'first.weight' has shape [4, 5], the model's has [5, 4]");
  expect_refused(
      module, {{"first.weight", weight}, {"first.bias", bias}, {"a", bias}, {"third.bias", bias}},
      "'a' (and 1 more)");
}

TEST_F(LoadTest, ParametersMustBePlaced) {
  Tied module;
  const CheckpointFiles files = write({{"first.bias", values({5}, 2)}});
  EXPECT_THROW(load_parameters(module, files), ContractError);
}

}  // namespace
}  // namespace shardproof
