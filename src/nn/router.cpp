#include "nn/router.h"

#include <ATen/ATen.h>

#include <limits>

#include "base/check.h"

namespace shardproof {
namespace {

using Scoring = RouterOptions::Scoring;

// The indices of the `count` largest along the last dim, equal ones by index.
at::Tensor largest(const at::Tensor& scores, int64_t count) {
  const auto [values, indices] =
      at::sort(scores.detach(), /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  return indices.narrow(-1, 0, count).contiguous();
}

// -inf for the experts outside the best groups.
at::Tensor within_groups(const at::Tensor& scores, int64_t groups, int64_t top_groups) {
  std::vector<int64_t> shape = scores.sizes().vec();
  shape.back() = groups;
  shape.push_back(scores.size(-1) / groups);
  const at::Tensor grouped = scores.view(shape);
  const at::Tensor best = grouped.gather(-1, largest(grouped, 2)).sum(-1);
  const at::Tensor out = at::ones_like(best, at::kBool).scatter(-1, largest(best, top_groups), 0);
  return grouped.masked_fill(out.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .view(scores.sizes());
}

}  // namespace

TopKRouter::TopKRouter(RouterOptions options)
    : Module("TopKRouter",
             {.inputs = {{"hidden_states"}},
              .outputs = {{.name = "top_k_index", .width = options.top_k, .integer = true},
                          {.name = "top_k_weights", .width = options.top_k},
                          {.name = "logits", .width = options.experts}}}),
      options_(options) {
  const int64_t experts = options_.experts;
  SP_EXPECT(options_.top_k > 0 && options_.top_k <= experts, "{} of {} experts cannot be chosen",
            options_.top_k, experts);
  SP_EXPECT(options_.groups > 0 && experts % options_.groups == 0 && options_.top_groups > 0 &&
                options_.top_groups <= options_.groups,
            "{} experts in {} groups, {} of which are taken", experts, options_.groups,
            options_.top_groups);
  const auto of_experts = [&] {
    return std::make_shared<Parameter>(std::vector{experts}, std::vector{Cut::plain(experts)});
  };
  weight_ = add_parameter(
      "weight",
      std::make_shared<Parameter>(std::vector{experts, options_.hidden},
                                  std::vector{Cut::plain(experts), Cut::plain(options_.hidden)}));
  if (options_.bias) bias_ = add_parameter("bias", of_experts());
  if (options_.scoring == Scoring::kSigmoid) {
    SP_EXPECT(experts / options_.groups >= 2 &&
                  options_.top_k <= options_.top_groups * (experts / options_.groups),
              "groups of {} experts, {} taken: each must have 2, together {}",
              experts / options_.groups, options_.top_groups, options_.top_k);
    correction_ = of_experts();
    correction_->requires_grad = false;
    add_parameter("e_score_correction_bias", correction_);
  }
}

InitialValues TopKRouter::initial_values(const std::string& parameter) const {
  return {parameter == "weight" ? InitialValues::Kind::kNormal : InitialValues::Kind::kZeros};
}

at::Tensor TopKRouter::choose(const at::Tensor& scores) const {
  if (options_.scoring != Scoring::kSigmoid) return largest(scores, options_.top_k);
  const at::Tensor corrected = scores.detach() + correction_->view().to(scores.scalar_type());
  return largest(within_groups(corrected, options_.groups, options_.top_groups), options_.top_k);
}

NamedTensors TopKRouter::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  SP_EXPECT(weight_->placed(), "{}: the weight is not placed yet", label());
  SP_EXPECT(weight_->view().size(0) == options_.experts && weight_->view().size(1) == x.size(-1),
            "{}: the weight that is held is {}; it must be whole, and tokens have width {}",
            label(), fmt::join(weight_->view().sizes(), "x"), x.size(-1));
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto logits_type = options_.wide_logits ? wide : x.scalar_type();
  const at::Tensor bias = bias_ ? bias_->view().to(logits_type) : at::Tensor();
  const at::Tensor logits = at::linear(x.to(logits_type), weight_->view().to(logits_type), bias);

  at::Tensor index, weights;
  if (options_.scoring == Scoring::kTopKSoftmax) {
    index = choose(logits);
    weights = at::softmax(logits.gather(-1, index), -1);
  } else {
    const at::Tensor scores = options_.scoring == Scoring::kSigmoid
                                  ? at::sigmoid(logits.to(wide))
                                  : at::softmax(logits.to(wide), -1);
    index = choose(scores);
    weights = scores.gather(-1, index);
  }
  if (options_.normalize) {
    // DeepSeek-V3 keeps the sum from 0 by this; a softmax's cannot be.
    const double floor = options_.scoring == Scoring::kSigmoid ? 1e-20 : 0.0;
    weights = weights / (weights.sum(-1, /*keepdim=*/true) + floor);
  }
  if (options_.scale != 1.0) weights = weights * options_.scale;
  if (options_.weights == RouterOptions::Type::kLogits) weights = weights.to(logits.scalar_type());
  return {{"top_k_index", index}, {"top_k_weights", weights}, {"logits", logits}};
}

}  // namespace shardproof
