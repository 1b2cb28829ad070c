// Experts against a sum written out token by token, and cut by experts and by width: what the parts
// give must sum to the whole.
#include "nn/experts.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;
using testing::Whole;

constexpr int64_t kHidden = 3;
constexpr int64_t kWidth = 5;

ExpertsOptions concatenated() { return {.count = 4, .hidden = kHidden, .width = kWidth}; }

ExpertsOptions interleaved() {
  ExpertsOptions options = concatenated();
  options.packing = ExpertsOptions::Packing::kInterleaved;
  options.order = ExpertsOptions::Order::kInOut;
  options.bias = true;
  options.clamped_gate = {.alpha = 1.702, .limit = 0.8};
  return options;
}

at::Tensor ids(const std::vector<int64_t>& flat, const std::vector<int64_t>& shape) {
  return at::tensor(flat, at::kLong).view(shape);
}

using RegionOf = std::function<Region(const Parameter&)>;

Region everything(const Parameter& parameter) { return whole_region(parameter.shape()); }

struct Result {
  at::Tensor output;
  Whole grads;  // of parameters by name, laid out as the whole; "tokens", "weights"
};

Result run(const ExpertsOptions& options, const at::Tensor& index, const RegionOf& region_of,
           bool first = true) {
  Experts experts(options);
  experts.finish();
  Whole whole = testing::whole_values(experts);
  if (!first && options.bias) whole["down_proj_bias"].zero_();
  testing::place(experts, whole, region_of);
  std::vector<int64_t> shape = index.sizes().vec();
  const at::Tensor weights = values(shape, 71).requires_grad_();
  shape.back() = kHidden;
  const at::Tensor tokens = values(shape, 70).requires_grad_();

  Result result;
  result.output = Module::only(experts.call(
      {}, {{"hidden_states", tokens}, {"top_k_index", index}, {"top_k_weights", weights}}));
  (result.output * values(shape, 72)).sum().backward();
  result.output = result.output.detach();
  result.grads = {{"tokens", tokens.grad()}, {"weights", weights.grad()}};
  for (const ParamPtr& parameter : experts.all_parameters()) {
    const at::Tensor grad = parameter->view().grad();
    EXPECT_TRUE(grad.defined()) << parameter->name();
    at::Tensor placed = at::zeros(parameter->shape(), at::kDouble);
    if (grad.defined()) testing::add_into(placed, parameter->held(), grad);
    result.grads[parameter->name()] = placed;
  }
  return result;
}

// The formula, one token and one route after the other.
at::Tensor by_hand(const ExpertsOptions& options, const Whole& whole, const at::Tensor& tokens,
                   const at::Tensor& index, const at::Tensor& weights) {
  at::Tensor output = at::zeros_like(tokens);
  const bool turned = options.order == ExpertsOptions::Order::kInOut;
  for (int64_t t = 0; t < tokens.size(0); ++t) {
    for (int64_t j = 0; j < index.size(1); ++j) {
      const auto e = index[t][j].item<int64_t>();
      const auto product = [&](const at::Tensor& x, const std::string& name) {
        const at::Tensor weight = whole.at(name)[e];
        const at::Tensor y = (turned ? weight.t() : weight).mv(x);
        return options.bias ? y + whole.at(name + "_bias")[e] : y;
      };
      const at::Tensor both = product(tokens[t], "gate_up_proj");
      at::Tensor inner;
      if (options.clamped_gate) {
        const at::Tensor gate = both.slice(0, 0, {}, 2).clamp_max(options.clamped_gate->limit);
        const at::Tensor up = both.slice(0, 1, {}, 2)
                                  .clamp(-options.clamped_gate->limit, options.clamped_gate->limit);
        inner = (up + 1) * gate * at::sigmoid(gate * options.clamped_gate->alpha);
      } else {
        inner = at::silu(both.narrow(0, 0, kWidth)) * both.narrow(0, kWidth, kWidth);
      }
      output[t] += weights[t][j] * product(inner, "down_proj");
    }
  }
  return output;
}

// Expert 1 gets no token; a token goes to one expert twice; each expert has constants of its own.
const std::vector<int64_t> kRoutes = {0, 2, 3, 0, 2, 2, 3, 0, 2, 3};

TEST(Experts, EqualTheFormulaTokenByToken) {
  const at::Tensor index = ids(kRoutes, {5, 2});
  for (const ExpertsOptions& options : {concatenated(), interleaved()}) {
    Experts experts(options);
    experts.finish();
    const at::Tensor truth = by_hand(options, testing::whole_values(experts),
                                     values({5, kHidden}, 70), index, values({5, 2}, 71));
    EXPECT_LT(relative_error(run(options, index, everything).output, truth), 1e-14);
  }
}

TEST(Experts, EachTokenGetsTheConstantsOfItsExpertsWithTheirWeights) {
  ExpertsOptions options = interleaved();
  options.hidden = 1;
  options.width = 1;
  Experts experts(options);
  experts.finish();
  Whole whole;
  for (const ParamPtr& parameter : experts.all_parameters())
    whole[parameter->name()] = at::zeros(parameter->shape(), at::kDouble);
  whole["down_proj_bias"] = at::tensor({1., 10., 100., 1000.}, at::kDouble).view({4, 1});
  testing::place_whole(experts, whole);
  const at::Tensor weights = at::tensor({0.5, 0.25, 2., 3., 0.125, 1.}, at::kDouble);

  const at::Tensor output =
      Module::only(experts.call({}, {{"hidden_states", at::ones({1, 3, 1}, at::kDouble)},
                                     {"top_k_index", ids({3, 0, 1, 2, 2, 3}, {1, 3, 2})},
                                     {"top_k_weights", weights.view({1, 3, 2})}}));

  EXPECT_TRUE(at::equal(output, at::tensor({500.25, 320., 1012.5}, at::kDouble).view({1, 3, 1})));
}

TEST(Experts, PartsByExpertsAndByWidthSumToTheWhole) {
  const at::Tensor index = ids(kRoutes, {5, 2});
  for (const ExpertsOptions& options : {concatenated(), interleaved()}) {
    const Result truth = run(options, index, everything);
    for (const bool by_width : {false, true}) {
      for (const int64_t ranks : {2, 3, 7}) {
        SCOPED_TRACE(fmt::format("{} over {} ranks", by_width ? "width" : "experts", ranks));
        Result sum;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const auto region_of = [&](const Parameter& parameter) {
            Region region = everything(parameter);
            const bool down = parameter.name().starts_with("down");
            const FeatureDims features = parameter.features();
            const int64_t dim = by_width ? (down ? features.in : features.out) : 0;
            if (dim >= 0)
              region[dim] = cut_intervals(parameter.cut(dim), parameter.shape()[dim], ranks, rank);
            return region;
          };
          // Cut by experts, every rank has the biases of its own.
          const Result part = run(options, index, region_of, rank == 0 || !by_width);
          if (rank == 0) {
            sum = part;
            continue;
          }
          sum.output += part.output;
          for (auto& [name, grad] : sum.grads) {
            // Cut by width, this one is whole on every rank.
            if (!by_width || name != "down_proj_bias") grad += part.grads.at(name);
          }
        }
        EXPECT_LT(relative_error(sum.output, truth.output), 1e-13);
        for (const auto& [name, grad] : sum.grads)
          EXPECT_LT(relative_error(grad, truth.grads.at(name)), 1e-13) << name;
      }
    }
  }
}

TEST(Experts, WithoutTokensTheyGetZeroGradients) {
  for (const ExpertsOptions& options : {concatenated(), interleaved()}) {
    const Result result = run(options, ids(kRoutes, {5, 2}), everything);
    for (const auto& [name, grad] : result.grads) {
      if (name == "tokens" || name == "weights") continue;
      EXPECT_TRUE(at::equal(grad[1], at::zeros_like(grad[1]))) << name;
      EXPECT_GT(grad[2].abs().min().item<double>(), 0) << name;
    }
  }
}

TEST(Experts, NoRoutesAndNoTokensReachEverything) {
  const auto last = [](const Parameter& parameter) {  // holds expert 1 only, which has no token
    Region region = everything(parameter);
    region[0] = {{1, 2}};
    return region;
  };
  const auto none = [](const Parameter& parameter) {
    Region region = everything(parameter);
    region[0] = {};
    return region;
  };
  for (const ExpertsOptions& options : {concatenated(), interleaved()}) {
    for (const auto& [index, region_of] :
         {std::pair<at::Tensor, RegionOf>{ids(kRoutes, {1, 5, 2}), last},
          {ids({}, {2, 0, 2}), everything},
          {ids(kRoutes, {1, 5, 2}), none}}) {
      const Result result = run(options, index, region_of);
      EXPECT_TRUE(at::equal(result.output, at::zeros_like(result.output)));
      for (const auto& [name, grad] : result.grads) {
        ASSERT_TRUE(grad.defined()) << name;
        EXPECT_TRUE(at::equal(grad, at::zeros_like(grad))) << name;
      }
    }
  }
}

// Has its own way to bring tokens to experts.
class Twice final : public ExpertDispatcher {
 public:
  at::Tensor combine(const Routes& routes, const RunExperts& run) override {
    EXPECT_EQ(routes.tokens.sizes().vec(), (std::vector<int64_t>{5, kHidden}));
    return 2 * run(routes.tokens, routes.experts.select(1, 0)) * routes.weights.narrow(1, 0, 1);
  }
};

TEST(Experts, ADispatcherDecides) {
  Experts experts(concatenated());
  experts.finish();
  const Whole whole = testing::whole_values(experts);
  testing::place_whole(experts, whole);
  experts.set_dispatcher(std::make_shared<Twice>());
  const at::Tensor index = ids(kRoutes, {5, 2});
  const at::Tensor tokens = values({1, 5, kHidden}, 70);
  const at::Tensor weights = values({5, 2}, 71);

  const at::Tensor output =
      Module::only(experts.call({}, {{"hidden_states", tokens},
                                     {"top_k_index", index.unsqueeze(0)},
                                     {"top_k_weights", weights.unsqueeze(0)}}));

  const at::Tensor truth =
      2 * by_hand(concatenated(), whole, tokens[0], index.narrow(1, 0, 1), weights.narrow(1, 0, 1));
  EXPECT_LT(relative_error(output[0], truth), 1e-14);
}

TEST(Experts, WrongPartsAreNamed) {
  const auto plain = [](const Parameter& parameter) {  // gate and up mixed
    Region region = everything(parameter);
    if (parameter.name() == "gate_up_proj") region[1] = {{0, kWidth + 1}};
    if (parameter.name() == "down_proj") region[2] = {{0, 3}};
    return region;
  };
  EXPECT_THROW(run(concatenated(), ids(kRoutes, {5, 2}), plain), ContractError);
  const auto apart = [](const Parameter& parameter) {
    Region region = everything(parameter);
    region[0] = parameter.name() == "down_proj" ? Intervals{{0, 2}} : Intervals{{2, 4}};
    return region;
  };
  EXPECT_THROW(run(concatenated(), ids(kRoutes, {5, 2}), apart), ContractError);
  EXPECT_THROW(run(concatenated(), ids({4, 0}, {1, 2}), everything), ContractError);
  EXPECT_THROW(run(concatenated(), ids({-1, 0}, {1, 2}), everything), ContractError);
}

}  // namespace
}  // namespace shardproof
