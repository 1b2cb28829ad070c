#include "train/optimizer.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "base/check.h"

namespace shardproof {

void AdamWOptions::validate() const {
  SP_VALIDATE(lr >= 0, "lr is {}: it must not be negative", lr);
  SP_VALIDATE(beta1 >= 0 && beta1 < 1, "beta1 is {}: it must be in [0, 1)", beta1);
  SP_VALIDATE(beta2 >= 0 && beta2 < 1, "beta2 is {}: it must be in [0, 1)", beta2);
  SP_VALIDATE(eps >= 0, "eps is {}: it must not be negative", eps);
  SP_VALIDATE(weight_decay >= 0, "weight_decay is {}: it must not be negative", weight_decay);
}

AdamW::AdamW(std::vector<ParamPtr> params, AdamWOptions options)
    : params_(std::move(params)), options_(options), moments_(params_.size()) {
  options_.validate();
  for (size_t i = 0; i < params_.size(); ++i)
    for (const std::string& name : params_[i]->names())
      SP_EXPECT(index_.emplace(name, i).second, "parameter '{}' was given to AdamW twice", name);
}

void AdamW::step() {
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < params_.size(); ++i)
    if (params_[i]->grad.defined()) update(*params_[i], moments_[i]);
}

void AdamW::update(Parameter& parameter, Moments& moments) const {
  at::Tensor kept = parameter.kept();
  const at::Tensor& grad = parameter.grad;
  SP_EXPECT(grad.sizes() == kept.sizes() && grad.scalar_type() == kept.scalar_type(),
            "the gradient of '{}' is {} {} where its shard is {} {}", parameter.name(),
            fmt::join(grad.sizes(), "x"), toString(grad.scalar_type()),
            fmt::join(kept.sizes(), "x"), toString(kept.scalar_type()));
  if (!moments.exp_avg.defined()) {
    moments.exp_avg = at::zeros_like(kept);
    moments.exp_avg_sq = at::zeros_like(kept);
  }
  ++moments.step;
  const double step = static_cast<double>(moments.step);
  const double correction1 = 1 - std::pow(options_.beta1, step);
  const double correction2_root = std::sqrt(1 - std::pow(options_.beta2, step));

  kept.mul_(1 - options_.lr * options_.weight_decay);
  moments.exp_avg.lerp_(grad, 1 - options_.beta1);
  moments.exp_avg_sq.mul_(options_.beta2).addcmul_(grad, grad, 1 - options_.beta2);
  const at::Tensor denominator =
      moments.exp_avg_sq.sqrt().div_(correction2_root).add_(options_.eps);
  kept.addcdiv_(moments.exp_avg, denominator, -options_.lr / correction1);
}

const AdamW::Moments& AdamW::moments(const std::string& name) const {
  const auto found = index_.find(name);
  SP_EXPECT(found != index_.end(), "AdamW holds no parameter '{}'", name);
  return moments_[found->second];
}

}  // namespace shardproof
