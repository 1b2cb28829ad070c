// Attention, whole against its formula, and cut by heads: what the ranks of a tp axis compute, one
// after the other, must sum to the whole.
#include "nn/attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/rotary.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;
using testing::Whole;

constexpr int64_t kHidden = 10;
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 5;

struct Computed {
  at::Tensor output, input_grad;
  Whole grads;
};

NamedTensors tables(const AttentionHeads& heads) {
  RotaryEmbedding rotary({.dim = heads.head_dim, .theta = 50.0});
  return rotary.call({at::zeros({1}, at::kDouble), at::arange(kLength, at::kLong).unsqueeze(0)});
}

// One rank of `ranks`: parameters cut as the model states, row bias on rank 0 only.
Region region_for(const Parameter& parameter, int64_t ranks, int64_t rank) {
  Region region = whole_region(parameter.shape());
  if (parameter.name() == "o_proj.bias") return region;
  const size_t dim = parameter.name() == "o_proj.weight" ? 1 : 0;
  region[dim] = cut_intervals(parameter.cut(dim), parameter.shape()[dim], ranks, rank);
  return region;
}

Computed run(const AttentionHeads& heads, int64_t ranks, int64_t rank, bool sinks = false) {
  Attention attention(
      {.hidden = kHidden, .heads = heads, .qkv_bias = true, .output_bias = true, .sinks = sinks});
  attention.finish();
  Whole whole = testing::whole_values(attention);
  if (sinks) whole["sinks"] = at::linspace(-5, 5, heads.queries, at::kDouble);
  if (rank > 0) whole["o_proj.bias"].zero_();
  testing::place(attention, whole,
                 [&](const Parameter& parameter) { return region_for(parameter, ranks, rank); });
  const at::Tensor x = values({kBatch, kLength, kHidden}, 40).requires_grad_();
  NamedTensors inputs = tables(heads);
  inputs.set("hidden_states", x);

  Computed result;
  result.output = Module::only(attention.call({}, inputs));
  (result.output * values({kBatch, kLength, kHidden}, 41)).sum().backward();
  result.output = result.output.detach();
  result.input_grad = x.grad();
  for (const ParamPtr& parameter : attention.all_parameters()) {
    const at::Tensor grad = parameter->view().grad();
    EXPECT_TRUE(grad.defined()) << parameter->name() << " is not reached by the graph of rank "
                                << rank;
    at::Tensor placed = at::zeros(parameter->shape(), at::kDouble);
    if (grad.defined()) testing::add_into(placed, parameter->held(), grad);
    result.grads[parameter->name()] = placed;
  }
  return result;
}

TEST(Attention, EqualsItsFormula) {
  const AttentionHeads heads = {.queries = 6, .keys = 2, .head_dim = 4};
  Attention attention({.hidden = kHidden, .heads = heads, .qkv_bias = true, .output_bias = true});
  attention.finish();
  const Whole whole = testing::whole_values(attention);
  const at::Tensor x = values({kBatch, kLength, kHidden}, 40);
  const NamedTensors cos_sin = tables(heads);
  const auto project = [&](const std::string& name, int64_t count) {
    const at::Tensor y = at::matmul(x, whole.at(name + ".weight").t()) + whole.at(name + ".bias");
    return y.view({kBatch, kLength, count, 4}).transpose(1, 2);
  };
  const at::Tensor query = rotate(project("q_proj", 6), cos_sin.at("cos"), cos_sin.at("sin"));
  const at::Tensor key =
      rotate(project("k_proj", 2), cos_sin.at("cos"), cos_sin.at("sin")).repeat_interleave(3, 1);
  const at::Tensor value = project("v_proj", 2).repeat_interleave(3, 1);
  const at::Tensor future = at::ones({kLength, kLength}, at::kBool).triu(1);
  const at::Tensor scores =
      (at::matmul(query, key.transpose(2, 3)) / 2.0).masked_fill(future, -INFINITY);
  const at::Tensor joined =
      at::matmul(at::softmax(scores, -1), value).transpose(1, 2).reshape({kBatch, kLength, 24});
  const at::Tensor truth =
      at::matmul(joined, whole.at("o_proj.weight").t()) + whole.at("o_proj.bias");

  EXPECT_LT(relative_error(run(heads, 1, 0).output, truth), 1e-14);
}

void expect_ranks_sum_to_the_whole(bool sinks) {
  const std::vector<AttentionHeads> models = {{.queries = 9, .keys = 3, .head_dim = 4},
                                              {.queries = 4, .keys = 1, .head_dim = 6},
                                              {.queries = 6, .keys = 2, .head_dim = 2},
                                              {.queries = 5, .keys = 5, .head_dim = 2}};
  for (const AttentionHeads& heads : models) {
    const Computed truth = run(heads, 1, 0, sinks);
    for (const int64_t ranks : {2, 3, 4, 6, 8}) {
      SCOPED_TRACE(fmt::format("{} / {} heads over {} ranks", heads.queries, heads.keys, ranks));
      Computed sum = run(heads, ranks, 0, sinks);
      for (int64_t rank = 1; rank < ranks; ++rank) {
        const Computed part = run(heads, ranks, rank, sinks);
        sum.output += part.output;
        sum.input_grad += part.input_grad;
        for (auto& [name, grad] : sum.grads) {
          if (name != "o_proj.bias") grad += part.grads.at(name);  // held whole by every rank
        }
      }
      EXPECT_LT(relative_error(sum.output, truth.output), 1e-12);
      EXPECT_LT(relative_error(sum.input_grad, truth.input_grad), 1e-12);
      for (const auto& [name, grad] : sum.grads) {
        EXPECT_LT((grad - truth.grads.at(name)).norm().item<double>(),
                  1e-12 * truth.grads.at("v_proj.weight").norm().item<double>())
            << name;
      }
    }
  }
}

TEST(Attention, RanksSumToTheWhole) { expect_ranks_sum_to_the_whole(false); }

// Each head has another large one: a wrong slice shows.
TEST(Attention, RanksWithTheSinksOfTheirHeadsSumToTheWhole) { expect_ranks_sum_to_the_whole(true); }

TEST(Attention, SinksAreOneMoreLogitAHeadThatNothingIsReadFrom) {
  // Queries of zeros: all scores are 0, the weights of the t-th token 1 / (t + exp(sink)).
  const AttentionHeads heads = {.queries = 2, .keys = 1, .head_dim = 2};
  Attention attention({.hidden = 4, .heads = heads, .sinks = true});
  attention.finish();
  Whole whole = testing::whole_values(attention);
  whole["q_proj.weight"].zero_();
  whole["v_proj.weight"] = at::ones({2, 4}, at::kDouble);
  whole["o_proj.weight"] = at::eye(4, at::kDouble);
  whole["sinks"] = at::log(at::tensor({1., 5.}, at::kDouble));
  testing::place_whole(attention, whole);
  NamedTensors inputs = tables(heads);
  inputs.set("hidden_states", at::full({1, kLength, 4}, 0.25, at::kDouble));

  const at::Tensor output = Module::only(attention.call({}, inputs));

  for (int64_t t = 1; t <= kLength; ++t) {
    EXPECT_NEAR(output[0][t - 1][0].item<double>(), t / (t + 1.0), 1e-15);
    EXPECT_NEAR(output[0][t - 1][3].item<double>(), t / (t + 5.0), 1e-15);
  }
}

TEST(Attention, SinksOfOtherHeadsAreRefused) {
  const AttentionHeads heads = {.queries = 4, .keys = 2, .head_dim = 2};
  Attention attention({.hidden = kHidden, .heads = heads, .sinks = true});
  attention.finish();
  testing::place(attention, testing::whole_values(attention), [](const Parameter& parameter) {
    Region region = region_for(parameter, 2, 0);
    if (parameter.name() == "sinks") region = region_for(parameter, 2, 1);
    return region;
  });
  NamedTensors inputs = tables(heads);
  inputs.set("hidden_states", values({1, kLength, kHidden}, 1));
  EXPECT_THROW(attention.call({}, inputs), ContractError);
}

// Heads held in an order that no equal runs describe: keys are picked one by one.
TEST(Attention, AnyMapOfHeadsWorks) {
  const AttentionHeads heads = {.queries = 6, .keys = 2, .head_dim = 2};
  const Computed truth = run(heads, 1, 0);
  at::Tensor sum = at::zeros_like(truth.output);
  const std::vector<Intervals> queries = {{{4, 8}, {0, 2}}, {{2, 4}, {8, 12}}};  // 2 3 0 | 1 4 5
  for (const Intervals& held : queries) {
    Attention attention({.hidden = kHidden, .heads = heads, .qkv_bias = true, .output_bias = true});
    attention.finish();
    Whole whole = testing::whole_values(attention);
    whole["o_proj.bias"] /= 2;
    testing::place(attention, whole, [&](const Parameter& parameter) {
      Region region = whole_region(parameter.shape());
      if (parameter.name().starts_with("q_proj")) region[0] = held;
      if (parameter.name() == "o_proj.weight") region[1] = held;
      return region;
    });
    NamedTensors inputs = tables(heads);
    inputs.set("hidden_states", values({kBatch, kLength, kHidden}, 40));
    sum += Module::only(attention.call({}, inputs)).detach();
  }
  EXPECT_LT(relative_error(sum, truth.output), 1e-12);
}

TEST(Attention, MissingKeyHeadIsRefusedByName) {
  const AttentionHeads heads = {.queries = 6, .keys = 2, .head_dim = 2};
  Attention attention({.hidden = kHidden, .heads = heads});
  attention.finish();
  testing::place(attention, testing::whole_values(attention), [&](const Parameter& parameter) {
    Region region = whole_region(parameter.shape());
    const bool is_key = parameter.name() == "k_proj.weight" || parameter.name() == "v_proj.weight";
    if (is_key) region[0] = {{0, 2}};
    return region;
  });
  NamedTensors inputs = tables(heads);
  inputs.set("hidden_states", values({kBatch, kLength, kHidden}, 40));
  try {
    attention.call({}, inputs);
    FAIL() << "nothing was thrown";
  } catch (const ContractError& error) {
    EXPECT_NE(std::string(error.what()).find("query head 3 reads key/value head 1"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace shardproof
