#include "nn/rms_norm.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace shardproof {

RmsNorm::RmsNorm(int64_t width, double eps)
    : Module("RmsNorm", {.inputs = {{"hidden_states"}}}), eps_(eps) {
  weight_ = add_parameter(
      "weight", std::make_shared<Parameter>(std::vector{width}, std::vector{Cut::plain(width)}));
}

InitialValues RmsNorm::initial_values(const std::string&) const {
  return {InitialValues::Kind::kOnes};
}

NamedTensors RmsNorm::forward(const NamedTensors& inputs) {
  const at::Tensor& input = inputs.at("hidden_states");
  const at::Tensor& weight = weight_->view();
  SP_EXPECT(weight.defined(), "{}: the weight is not placed yet", label());
  SP_EXPECT(input.size(-1) == weight.size(0), "{}: the input has width {}, the weight {}", label(),
            input.size(-1), weight.size(0));
  const auto type = input.scalar_type();
  const at::Tensor wide = input.to(type == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
  const at::Tensor normed = wide * at::rsqrt(variance + eps_);
  return {{"output", weight * normed.to(type)}};
}

}  // namespace shardproof
