// Models with windows and with attention of their own: in pieces through a cache as at once, padded
// in front as alone.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/test_source.h"
#include "checkpoint/load.h"
#include "models/family.h"
#include "nn/kv_cache.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;

// Windows are 4 to 7 tokens (the last model has none), the sequences here 12.
const std::vector<std::string> kFixtures = {"mistral_6_2",  "qwen2_9_3",   "phi3_6_2",
                                            "gemma3_4_2",   "mixtral_6_2", "gpt_oss_6_2",
                                            "deepseek_v3_4"};
constexpr int64_t kLength = 12;

std::shared_ptr<Module> load(const std::string& name) {
  const auto path = source_folder() / "fixtures" / name;
  const auto model = build_from_directory(shipped_families(), path.string()).causal_lm.model;
  for (const ParamPtr& parameter : model->all_parameters()) parameter->place_whole(at::kDouble);
  load_parameters(*model, CheckpointFiles(path));
  return model;
}

void set_caches(Module& model, int64_t batch, int64_t capacity) {
  for (Module* module : model.modules()) {
    if (auto* holder = dynamic_cast<CacheHolder*>(module))
      holder->set_cache(capacity == 0 ? nullptr : holder->make_cache(batch, capacity));
  }
}

at::Tensor ids(int64_t batch) {
  return at::arange(batch * kLength, at::kLong).mul(29).add(3).remainder(73).view({batch, kLength});
}

// What the model gives for the tokens in these pieces, with a cache.
at::Tensor in_pieces(Module& model, const at::Tensor& ids, const at::Tensor& mask,
                     const std::vector<int64_t>& pieces) {
  set_caches(model, ids.size(0), kLength);
  std::vector<at::Tensor> logits;
  int64_t begin = 0;
  for (const int64_t count : pieces) {
    const at::Tensor seen = mask.defined() ? mask.narrow(1, 0, begin + count) : mask;
    logits.push_back(
        Module::only(model.call({ids.narrow(1, begin, count)}, {{"attention_mask", seen}})));
    begin += count;
  }
  set_caches(model, 0, 0);
  return at::cat(logits, 1);
}

TEST(Windows, InPiecesThroughACacheAsAtOnce) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : kFixtures) {
    SCOPED_TRACE(name);
    const auto model = load(name);
    const at::Tensor truth = (*model)(ids(2));
    for (const at::Tensor& mask : {at::Tensor(), at::ones({2, kLength}, at::kLong)}) {
      const at::Tensor whole = Module::only(model->call({ids(2)}, {{"attention_mask", mask}}));
      EXPECT_LT(relative_error(whole, truth), 1e-13);
      for (const std::vector<int64_t>& pieces :
           {std::vector<int64_t>{3, 6, 3}, std::vector<int64_t>(kLength, 1)})
        EXPECT_LT(relative_error(in_pieces(*model, ids(2), mask, pieces), truth), 1e-13);
    }
  }
}

TEST(Windows, PaddedInFrontAsAlone) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : kFixtures) {
    SCOPED_TRACE(name);
    const auto model = load(name);
    at::Tensor mask = at::ones({2, kLength}, at::kLong);
    mask[1].narrow(0, 0, 3).zero_();
    const at::Tensor alone = (*model)(ids(2).narrow(0, 1, 1).narrow(1, 3, kLength - 3))[0];
    const at::Tensor batch = Module::only(model->call({ids(2)}, {{"attention_mask", mask}}));
    EXPECT_LT(relative_error(batch[1].narrow(0, 3, kLength - 3), alone), 1e-12);
    EXPECT_TRUE(at::isfinite(batch).all().item<bool>());
    EXPECT_LT(relative_error(in_pieces(*model, ids(2), mask, {5, 4, 1, 1, 1}), batch), 1e-12);
  }
}

// A token sees through the layers below as far as their windows add up, and no further.
TEST(Windows, WhatLiesBeforeThemChangesNothing) {
  const at::NoGradGuard no_grad;
  const auto model = load("mistral_6_2");  // three layers of 5: 12 tokens before the last
  const at::Tensor given = at::cat({ids(1), ids(1)}, 1);
  at::Tensor changed = given.clone();
  const int64_t last = given.size(1) - 1;
  const auto last_logits = [&](const at::Tensor& ids) { return (*model)(ids)[0][last]; };
  changed[0][last - 13].fill_(given[0][last - 13].item<int64_t>() + 1);
  EXPECT_TRUE(at::allclose(last_logits(changed), last_logits(given), 1e-13, 1e-13));
  changed[0][last - 12].fill_(given[0][last - 12].item<int64_t>() + 1);
  EXPECT_GT(relative_error(last_logits(changed), last_logits(given)), 1e-8);
}

}  // namespace
}  // namespace shardproof
