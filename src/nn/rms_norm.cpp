#include "nn/rms_norm.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace shardproof {

RmsNorm::RmsNorm(RmsNormOptions options)
    : Module("RmsNorm", {.inputs = {{"hidden_states"}}}), options_(options) {
  weight_ =
      add_parameter("weight", std::make_shared<Parameter>(std::vector{options.width},
                                                          std::vector{Cut::plain(options.width)}));
}

InitialValues RmsNorm::initial_values(const std::string&) const {
  return {options_.scale == RmsNormOptions::Scale::kOnePlusWeight ? InitialValues::Kind::kZeros
                                                                  : InitialValues::Kind::kOnes};
}

NamedTensors RmsNorm::forward(const NamedTensors& inputs) {
  const at::Tensor& input = inputs.at("hidden_states");
  const at::Tensor& weight = weight_->view();
  SP_EXPECT(weight.defined(), "{}: the weight is not placed yet", label());
  const int64_t width = weight.size(0);
  SP_EXPECT(options_.in_runs ? input.size(-1) % width == 0 : input.size(-1) == width,
            "{}: the input has width {}, the weight {}", label(), input.size(-1), width);
  if (options_.in_runs) {
    std::vector<int64_t> runs = input.sizes().vec();
    runs.back() /= width;
    runs.push_back(width);
    return {{"output", normed(input.reshape(runs)).reshape(input.sizes())}};
  }
  return {{"output", normed(input)}};
}

at::Tensor RmsNorm::normed(const at::Tensor& input) const {
  const at::Tensor& weight = weight_->view();
  const auto type = input.scalar_type();
  const auto wide_type = type == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor wide = input.to(wide_type);
  const at::Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
  const at::Tensor normed = wide * at::rsqrt(variance + options_.eps);
  if (options_.scale == RmsNormOptions::Scale::kOnePlusWeight)
    return (normed * (1.0 + weight.to(wide_type))).to(type);
  if (options_.scale == RmsNormOptions::Scale::kWeightWide) return (weight * normed).to(type);
  return weight * normed.to(type);
}

}  // namespace shardproof
