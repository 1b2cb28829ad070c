// Attention with a cache and with masks: token by token it must give what it gives at once.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/attention.h"
#include "nn/padding.h"
#include "nn/rotary.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;

constexpr int64_t kHidden = 10;
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 5;
constexpr AttentionHeads kHeads = {.queries = 6, .keys = 2, .head_dim = 4};

std::unique_ptr<Attention> placed(const Intervals& queries, const Intervals& keys) {
  auto attention =
      std::make_unique<Attention>(AttentionOptions{.hidden = kHidden, .heads = kHeads});
  attention->finish();
  testing::place(*attention, testing::whole_values(*attention), [&](const Parameter& parameter) {
    Region region = whole_region(parameter.shape());
    if (parameter.name() == "q_proj.weight") region[0] = queries;
    if (parameter.name() == "k_proj.weight" || parameter.name() == "v_proj.weight")
      region[0] = keys;
    if (parameter.name() == "o_proj.weight") region[1] = queries;
    return region;
  });
  return attention;
}

// The tokens [begin, begin + count) of one input.
at::Tensor run(Attention& attention, int64_t begin, int64_t count, const at::Tensor& mask = {}) {
  RotaryEmbedding rotary({.dim = kHeads.head_dim, .theta = 50.0});
  NamedTensors inputs =
      rotary.call({at::zeros({1}, at::kDouble), at::arange(begin, begin + count).unsqueeze(0)});
  inputs.set("hidden_states", values({kBatch, kLength, kHidden}, 40).narrow(1, begin, count));
  inputs.set("mask", mask);
  return Module::only(attention.call({}, inputs));
}

struct Held {
  const char* what;
  Intervals queries, keys;
  int64_t key_heads;
};
const std::vector<Held> kHeld = {{"all heads", {{0, 24}}, {{0, 8}}, 2},
                                 {"heads of one group", {{12, 24}}, {{4, 8}}, 1},
                                 {"keys picked one by one", {{8, 16}, {0, 4}}, {{0, 8}}, 2},
                                 {"no heads", {{0, 0}}, {{0, 0}}, 0}};

TEST(AttentionCache, InPiecesAsAtOnce) {
  const at::NoGradGuard no_grad;
  for (const Held& held : kHeld) {
    SCOPED_TRACE(held.what);
    const auto attention = placed(held.queries, held.keys);
    const at::Tensor truth = run(*attention, 0, kLength);
    const at::Tensor ones = at::ones({kBatch, kLength}, at::kLong);
    for (const bool masked : {false, true}) {
      const auto cache = attention->make_cache(kBatch, kLength + 1);
      EXPECT_EQ(cache->bytes(), 2 * kBatch * held.key_heads * (kLength + 1) * 4 * 8);
      attention->set_cache(cache);
      std::vector<at::Tensor> pieces;
      for (const auto& [begin, count] : {std::pair{0, 2}, {2, 1}, {3, 2}}) {
        const at::Tensor mask =
            masked ? causal_mask(ones.narrow(1, 0, begin + count), kBatch, count) : at::Tensor();
        pieces.push_back(run(*attention, begin, count, mask));
      }
      EXPECT_EQ(attention->cached(), kLength);
      attention->set_cache(nullptr);
      if (held.key_heads == 0) {
        EXPECT_EQ(at::cat(pieces, 1).abs().sum().item<double>(), 0.0);
      } else {
        EXPECT_LT(relative_error(at::cat(pieces, 1), truth), 1e-14);
      }
    }
  }
}

TEST(AttentionCache, MaskedTokensAreNotSeen) {
  const at::NoGradGuard no_grad;
  const auto attention = placed({{0, 24}}, {{0, 8}});
  at::Tensor tokens = at::ones({kBatch, kLength}, at::kLong);
  EXPECT_LT(relative_error(run(*attention, 0, kLength, causal_mask(tokens, kBatch, kLength)),
                           run(*attention, 0, kLength)),
            1e-14);
  // Without its first two tokens the first sequence is one that starts at its third.
  tokens[0].narrow(0, 0, 2).zero_();
  const at::Tensor padded = run(*attention, 0, kLength, causal_mask(tokens, kBatch, kLength));
  EXPECT_LT(relative_error(padded[0].narrow(0, 2, 3), run(*attention, 2, 3)[0]), 1e-14);
  EXPECT_LT(relative_error(padded[1], run(*attention, 0, kLength)[1]), 1e-14);
  EXPECT_TRUE(at::isfinite(padded).all().item<bool>());
}

TEST(AttentionCache, WrongUseIsRefused) {
  const auto attention = placed({{0, 24}}, {{0, 8}});
  attention->set_cache(attention->make_cache(kBatch, 3));
  EXPECT_THROW(run(*attention, 0, 2), ContractError) << "gradients are on";
  const at::NoGradGuard no_grad;
  run(*attention, 0, 2);
  EXPECT_THROW(run(*attention, 2, 1, at::ones({1, 1, 1, 1}, at::kBool)), ContractError)
      << "a mask for the current token only";
  EXPECT_THROW(run(*attention, 3, 1), ContractError) << "more than the capacity";
  KvCache cache({.batch = 1, .heads = 2, .capacity = 4, .head_dim = 3}, at::kDouble);
  const at::Tensor good = values({1, 2, 1, 3}, 1);
  EXPECT_THROW(cache.append(good.to(at::kFloat), good.to(at::kFloat)), ContractError);
  EXPECT_THROW(cache.append(good.narrow(1, 0, 1), good.narrow(1, 0, 1)), ContractError);
  cache.set_heads(1);  // while it is empty
  EXPECT_EQ(cache.append(good.narrow(1, 0, 1), good.narrow(1, 0, 1)).key.size(1), 1);
  EXPECT_THROW(cache.set_heads(2), ContractError);
  cache = KvCache({.batch = 1, .heads = 2, .capacity = 4, .head_dim = 3}, at::kDouble);
  EXPECT_EQ(cache.append(good, good + 1).value.sizes().vec(), (std::vector<int64_t>{1, 2, 1, 3}));
}

}  // namespace
}  // namespace shardproof
