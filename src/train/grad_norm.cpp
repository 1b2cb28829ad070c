#include "train/grad_norm.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

// Of a gradient, what this rank counts.
at::Tensor owned_part(const Parameter& parameter) {
  const Region& owned = parameter.owned;
  if (owned == parameter.kept_region()) return parameter.grad;
  return take(parameter.grad, parameter.kept_region(), owned);
}

at::Tensor squared_sum(const at::Tensor& tensor) { return tensor.to(at::kDouble).square().sum(); }

}  // namespace

double grad_norm(const std::vector<ParamPtr>& params, Communicator& world) {
  const c10::NoGradGuard no_grad;
  at::Tensor squares = at::zeros({1}, at::kDouble);
  for (const ParamPtr& parameter : params)
    if (parameter->grad.defined()) squares += squared_sum(owned_part(*parameter));
  world.all_reduce(squares, squares, ReduceOp::kSum, {"", "grad_norm", "step"}).wait();
  return std::sqrt(squares.item<double>());
}

void scale_to_norm_(const std::vector<ParamPtr>& params, double norm, double max_norm) {
  SP_EXPECT(max_norm > 0, "max_norm is {}: it must be positive", max_norm);
  const c10::NoGradGuard no_grad;
  // Not std::min: as in torch, a norm that is NaN makes every gradient NaN.
  const double ratio = max_norm / (norm + 1e-6);
  const double factor = ratio >= 1.0 ? 1.0 : ratio;
  for (const ParamPtr& parameter : params)
    if (parameter->grad.defined()) parameter->grad.mul_(factor);
}

double clip_grad_norm_(const std::vector<ParamPtr>& params, Communicator& world, double max_norm) {
  const double norm = grad_norm(params, world);
  scale_to_norm_(params, norm, max_norm);
  return norm;
}

}  // namespace shardproof
