// Latent attention, whole against its formula, and cut by heads: what the ranks of a tp axis
// compute, one after the other, must sum to the whole.
#include "nn/latent_attention.h"

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

constexpr int64_t kHeads = 5;
constexpr int64_t kLength = 6;
constexpr int64_t kHidden = 7;

LatentAttentionOptions options_of(bool compressed) {
  LatentAttentionOptions options = {.hidden = kHidden,
                                    .heads = kHeads,
                                    .key_rank = 3,
                                    .plain_dim = 2,
                                    .rope_dim = 4,
                                    .value_dim = 5,
                                    .bias = true,
                                    .neighbours = true,
                                    .scale = 0.3};
  if (compressed) options.query_rank = 6;
  return options;
}

NamedTensors inputs_for(const at::Tensor& x) {
  RotaryEmbedding rotary({.dim = 4, .theta = 50.0});
  const at::Tensor positions = at::arange(x.size(1), at::kLong).unsqueeze(0);
  NamedTensors inputs = rotary.call({at::zeros({1}, at::kDouble), positions});
  inputs.set("hidden_states", x);
  return inputs;
}

struct Computed {
  at::Tensor output;
  Whole grads;  // laid out as the whole, and "input"
};

bool is_cut(const std::string& name) {
  return name == "q_b_proj.weight" || name == "q_proj.weight" || name == "kv_b_proj.weight" ||
         name == "o_proj.weight";
}

Region region_for(const Parameter& parameter, int64_t ranks, int64_t rank) {
  Region region = whole_region(parameter.shape());
  if (!is_cut(parameter.name())) return region;
  const size_t dim = parameter.name() == "o_proj.weight" ? 1 : 0;
  region[dim] =
      cut_intervals(parameter.cut(static_cast<int64_t>(dim)), parameter.shape()[dim], ranks, rank);
  return region;
}

Computed run(bool compressed, int64_t ranks, int64_t rank) {
  LatentAttention attention(options_of(compressed));
  attention.finish();
  Whole whole = testing::whole_values(attention);
  if (rank > 0) whole["o_proj.bias"].zero_();
  testing::place(attention, whole,
                 [&](const Parameter& parameter) { return region_for(parameter, ranks, rank); });
  const at::Tensor x = values({2, kLength, kHidden}, 40).requires_grad_();
  Computed result;
  result.output = Module::only(attention.call({}, inputs_for(x)));
  (result.output * values({2, kLength, kHidden}, 41)).sum().backward();
  result.output = result.output.detach();
  result.grads["input"] = x.grad();
  for (const ParamPtr& parameter : attention.all_parameters()) {
    const at::Tensor grad = parameter->view().grad();
    EXPECT_TRUE(grad.defined()) << parameter->name();
    at::Tensor placed = at::zeros(parameter->shape(), at::kDouble);
    if (grad.defined()) testing::add_into(placed, parameter->held(), grad);
    result.grads[parameter->name()] = placed;
  }
  return result;
}

// One head and one token after the other; pairs are neighbours.
TEST(LatentAttention, EqualsItsFormula) {
  LatentAttention attention(options_of(true));
  attention.finish();
  const Whole whole = testing::whole_values(attention);
  const at::Tensor x = values({2, kLength, kHidden}, 40)[0];
  const NamedTensors tables = inputs_for(x.unsqueeze(0));
  const auto times = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor y = x.matmul(whole.at(name + ".weight").t());
    return whole.contains(name + ".bias") ? y + whole.at(name + ".bias") : y;
  };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return x * (x.pow(2).mean(-1, true) + 1e-6).rsqrt() * whole.at(name + ".weight");
  };
  const auto turn = [&](const at::Tensor& x) {  // [length, 4]
    const at::Tensor cos = tables.at("cos")[0].narrow(1, 0, 2);
    const at::Tensor sin = tables.at("sin")[0].narrow(1, 0, 2);
    const at::Tensor a = x.slice(1, 0, {}, 2);
    const at::Tensor b = x.slice(1, 1, {}, 2);
    return at::cat({a * cos - b * sin, b * cos + a * sin}, 1);
  };
  const at::Tensor q = times(norm(times(x, "q_a_proj"), "q_a_layernorm"), "q_b_proj");
  const at::Tensor latent = times(x, "kv_a_proj_with_mqa");
  const at::Tensor kv = times(norm(latent.narrow(1, 0, 3), "kv_a_layernorm"), "kv_b_proj");
  const at::Tensor shared = turn(latent.narrow(1, 3, 4));
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < kHeads; ++h) {
    const at::Tensor query = q.narrow(1, h * 6, 6);
    const at::Tensor both = kv.narrow(1, h * 7, 7);
    const at::Tensor scores = 0.3 * (query.narrow(1, 0, 2).matmul(both.narrow(1, 0, 2).t()) +
                                     turn(query.narrow(1, 2, 4)).matmul(shared.t()));
    const at::Tensor future = at::ones({kLength, kLength}, at::kBool).triu(1);
    heads.push_back(
        at::softmax(scores.masked_fill(future, -INFINITY), -1).matmul(both.narrow(1, 2, 5)));
  }
  const at::Tensor truth = times(at::cat(heads, 1), "o_proj");

  EXPECT_LT(relative_error(run(true, 1, 0).output[0], truth), 1e-13);
}

TEST(LatentAttention, RanksSumToTheWhole) {
  for (const bool compressed : {true, false}) {
    const Computed truth = run(compressed, 1, 0);
    for (const int64_t ranks : {2, 3, 7}) {
      SCOPED_TRACE(fmt::format("{} ranks, compressed {}", ranks, compressed));
      Computed sum = run(compressed, ranks, 0);
      for (int64_t rank = 1; rank < ranks; ++rank) {
        const Computed part = run(compressed, ranks, rank);
        sum.output += part.output;
        for (auto& [name, grad] : sum.grads) {
          if (name != "o_proj.bias") grad += part.grads.at(name);  // held whole by every rank
        }
      }
      EXPECT_LT(relative_error(sum.output, truth.output), 1e-13);
      for (const auto& [name, grad] : sum.grads)
        EXPECT_LT(relative_error(grad, truth.grads.at(name)), 1e-12) << name;
    }
  }
}

TEST(LatentAttention, OtherHeadsOfKeysAreRefused) {
  LatentAttention attention(options_of(true));
  attention.finish();
  testing::place(attention, testing::whole_values(attention), [](const Parameter& parameter) {
    return region_for(parameter, 2, parameter.name() == "kv_b_proj.weight" ? 1 : 0);
  });
  EXPECT_THROW(attention.call({}, inputs_for(values({1, kLength, kHidden}, 1))), ContractError);
}

}  // namespace
}  // namespace shardproof
