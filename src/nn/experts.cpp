#include "nn/experts.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "nn/grouped_matmul.h"

namespace shardproof {
namespace {

using Order = ExpertsOptions::Order;
using Packing = ExpertsOptions::Packing;

std::vector<int64_t> positions_of(const Intervals& intervals) {
  std::vector<int64_t> positions;
  for (const Interval& interval : intervals) {
    for (int64_t i = interval.begin; i < interval.end; ++i) positions.push_back(i);
  }
  return positions;
}

}  // namespace

Experts::Experts(ExpertsOptions options)
    : Module("Experts", {.inputs = {{"hidden_states"},
                                    {.name = "top_k_index", .integer = true},
                                    {"top_k_weights"}}}),
      options_(options) {
  const int64_t both = 2 * options_.width;
  const Cut experts = Cut::plain(options_.count);
  const Cut hidden = Cut::plain(options_.hidden);
  const Cut width = Cut::plain(options_.width);
  // Both ways a rank that holds a feature of `width` holds its gate and its up.
  const Section half = {.width = options_.width};
  const Cut gate_up =
      options_.packing == Packing::kInterleaved ? Cut::units(both, 2) : Cut{{half, half}};
  const auto matrix = [&](const char* name, int64_t out, const Cut& out_cut, int64_t in,
                          const Cut& in_cut) {
    auto parameter =
        options_.order == Order::kOutIn
            ? std::make_shared<Parameter>(std::vector{options_.count, out, in},
                                          std::vector{experts, out_cut, in_cut}, FeatureDims{1, 2})
            : std::make_shared<Parameter>(std::vector{options_.count, in, out},
                                          std::vector{experts, in_cut, out_cut}, FeatureDims{2, 1});
    return add_parameter(name, parameter);
  };
  const auto bias = [&](const char* name, int64_t out, const Cut& cut) {
    return add_parameter(
        name, std::make_shared<Parameter>(std::vector{options_.count, out},
                                          std::vector{experts, cut}, FeatureDims{1, -1}));
  };
  gate_up_ = matrix("gate_up_proj", both, gate_up, options_.hidden, hidden);
  if (options_.bias) gate_up_bias_ = bias("gate_up_proj_bias", both, gate_up);
  down_ = matrix("down_proj", options_.hidden, hidden, options_.width, width);
  if (options_.bias) down_bias_ = bias("down_proj_bias", options_.hidden, hidden);
}

InitialValues Experts::initial_values(const std::string& parameter) const {
  return {parameter.ends_with("_bias") ? InitialValues::Kind::kZeros
                                       : InitialValues::Kind::kNormal};
}

void Experts::check_held() const {
  SP_EXPECT(gate_up_->placed(), "{}: the weights are not placed yet", label());
  const Intervals& experts = gate_up_->held().at(0);
  for (const ParamPtr& other : {down_, gate_up_bias_, down_bias_}) {
    SP_EXPECT(!other || other->held().at(0) == experts,
              "{}: of gate_up_proj {} experts are held, of {} {} or others", label(),
              total_size(experts), other->name(), total_size(other->held().at(0)));
  }
  const Intervals& both = gate_up_->held().at(gate_up_->features().out);
  const Intervals& width = down_->held().at(down_->features().in);
  SP_EXPECT(total_size(both) == 2 * total_size(width),
            "{}: {} features of gate_up_proj are held for {} of down_proj: cut both", label(),
            total_size(both), total_size(width));
  SP_EXPECT(!gate_up_bias_ || gate_up_bias_->held().at(1) == both,
            "{}: gate_up_proj and its bias hold other features", label());
  if (options_.packing == Packing::kInterleaved) return;
  const int64_t gates = total_size(intersect(both, {{0, options_.width}}));
  SP_EXPECT(
      2 * gates == total_size(both),
      "{}: {} features of gate are held and {} of up: they must be cut alike, each on its own "
      "(packed_colwise)",
      label(), gates, total_size(both) - gates);
}

at::Tensor Experts::local_positions() const {
  const std::vector<int64_t> held = positions_of(gate_up_->held().at(0));
  std::vector<int64_t> positions(options_.count, -1);
  for (size_t i = 0; i < held.size(); ++i) positions[held[i]] = static_cast<int64_t>(i);
  return at::tensor(positions, at::TensorOptions().dtype(at::kLong)).to(gate_up_->view().device());
}

at::Tensor Experts::gated(const at::Tensor& both) const {
  const int64_t width = both.size(-1) / 2;
  at::Tensor gate, up;
  if (options_.packing == Packing::kInterleaved) {
    const at::Tensor pairs = both.view({both.size(0), width, 2});
    gate = pairs.select(-1, 0);
    up = pairs.select(-1, 1);
  } else {
    gate = both.narrow(-1, 0, width);
    up = both.narrow(-1, width, width);
  }
  if (!options_.clamped_gate) return activate(options_.activation, gate) * up;
  const auto [alpha, limit] = *options_.clamped_gate;
  gate = gate.clamp_max(limit);
  up = up.clamp(-limit, limit);
  return (up + 1) * (gate * at::sigmoid(gate * alpha));
}

at::Tensor Experts::run(const at::Tensor& rows, const at::Tensor& experts) const {
  const at::Tensor local = local_positions().index_select(0, experts);
  const int64_t held = gate_up_->view().size(0);
  SP_EXPECT(local.numel() == 0 || local.min().item<int64_t>() >= 0,
            "{}: rows were sent to experts that are not held", label());
  const at::Tensor order = at::argsort(local, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor sorted = local.index_select(0, order);
  const at::Tensor counted = at::bincount(sorted, {}, held).to(at::kCPU);
  const std::span<const int64_t> counts(counted.const_data_ptr<int64_t>(), held);

  const auto product = [&](const at::Tensor& x, const ParamPtr& weight, const ParamPtr& bias) {
    const at::Tensor& view = weight->view();
    const at::Tensor y =
        grouped_matmul(x, options_.order == Order::kOutIn ? view.transpose(1, 2) : view, counts);
    return bias ? y + bias->view().index_select(0, sorted) : y;
  };
  const at::Tensor both = product(rows.index_select(0, order), gate_up_, gate_up_bias_);
  const at::Tensor given = product(gated(both), down_, down_bias_);
  return given.index_select(0, at::argsort(order));
}

at::Tensor Experts::combine_held(const Routes& routes) const {
  const int64_t k = routes.experts.size(1);
  const at::Tensor experts = routes.experts.reshape({-1});
  const at::Tensor mine = local_positions().index_select(0, experts).ge(0).nonzero().reshape({-1});
  const at::Tensor token = mine.div(k, "floor");
  const at::Tensor given = run(routes.tokens.index_select(0, token), experts.index_select(0, mine));
  const at::Tensor weights = routes.weights.reshape({-1}).index_select(0, mine).unsqueeze(-1);
  // The product is of the wider type, the sum of the tokens' own.
  const at::Tensor weighted = (given * weights).to(routes.tokens.scalar_type());
  return at::zeros_like(routes.tokens).index_add(0, token, weighted);
}

NamedTensors Experts::forward(const NamedTensors& inputs) {
  const at::Tensor& hidden_states = inputs.at("hidden_states");
  const at::Tensor& index = inputs.at("top_k_index");
  const at::Tensor& weights = inputs.at("top_k_weights");
  check_held();
  SP_EXPECT(index.sizes() == weights.sizes() &&
                index.sizes().slice(0, index.dim() - 1) ==
                    hidden_states.sizes().slice(0, hidden_states.dim() - 1) &&
                index.size(-1) > 0,
            "{}: tokens {}, routes {}, weights {}: a token has k of both", label(),
            fmt::join(hidden_states.sizes(), "x"), fmt::join(index.sizes(), "x"),
            fmt::join(weights.sizes(), "x"));
  if (index.numel() > 0) {
    const auto least = index.min().item<int64_t>();
    const auto most = index.max().item<int64_t>();
    SP_EXPECT(least >= 0 && most < options_.count,
              "{}: tokens are sent to experts {} to {}, there are {}", label(), least, most,
              options_.count);
  }
  const int64_t k = index.size(-1);
  const int64_t tokens = index.numel() / k;
  const Routes routes = {.tokens = hidden_states.reshape({tokens, hidden_states.size(-1)}),
                         .experts = index.reshape({tokens, k}),
                         .weights = weights.reshape({tokens, k})};
  const at::Tensor output =
      dispatcher_ ? dispatcher_->combine(routes,
                                         [this](const at::Tensor& rows, const at::Tensor& experts) {
                                           return run(rows, experts);
                                         })
                  : combine_held(routes);
  return {{"output", output.to(hidden_states.scalar_type()).reshape(hidden_states.sizes())}};
}

}  // namespace shardproof
