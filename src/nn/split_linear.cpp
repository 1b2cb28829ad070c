#include "nn/split_linear.h"

#include <ATen/ops/linear.h>

#include "base/check.h"

namespace shardproof {

SplitLinear::SplitLinear(SplitLinearOptions options)
    : Module("SplitLinear", {.inputs = {{"input", true, "weight", 1}},
                             .outputs = {{.name = "compressed", .width = options.compressed},
                                         {.name = "rope", .width = options.rope}}}),
      compressed_(options.compressed),
      rope_(options.rope) {
  const int64_t out = compressed_ + rope_;
  weight_ = add_parameter(
      "weight", std::make_shared<Parameter>(std::vector{out, options.in},
                                            std::vector{Cut::plain(out), Cut::plain(options.in)}));
  if (options.bias) {
    bias_ = add_parameter(
        "bias", std::make_shared<Parameter>(std::vector{out}, std::vector{Cut::plain(out)}));
  }
}

InitialValues SplitLinear::initial_values(const std::string& parameter) const {
  return {parameter == "bias" ? InitialValues::Kind::kZeros : InitialValues::Kind::kNormal};
}

NamedTensors SplitLinear::forward(const NamedTensors& inputs) {
  const at::Tensor& input = inputs.at("input");
  const at::Tensor& weight = weight_->view();
  SP_EXPECT(weight.defined(), "{}: the weight is not placed yet", label());
  SP_EXPECT(input.size(-1) == weight.size(1),
            "{}: the input has width {}, the weight that is held takes {}", label(), input.size(-1),
            weight.size(1));
  const at::Tensor output = at::linear(input, weight, bias_ ? bias_->view() : at::Tensor());
  return {{"compressed", output.narrow(-1, 0, compressed_)},
          {"rope", output.narrow(-1, compressed_, rope_)}};
}

}  // namespace shardproof
