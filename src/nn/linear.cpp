#include "nn/linear.h"

#include <ATen/ops/linear.h>

#include "base/check.h"

namespace shardproof {
namespace {

Cut plain_if_empty(Cut cut, int64_t width) {
  return cut.sections.empty() ? Cut::plain(width) : std::move(cut);
}

}  // namespace

Linear::Linear(LinearOptions options)
    : Module("Linear", {.inputs = {{"input", true, "weight", 1}},
                        .outputs = {{"output", true, "weight", 0}}}) {
  const std::vector<int64_t> shape = {options.out, options.in};
  const Cut out_cut = plain_if_empty(options.out_cut, options.out);
  const Cut in_cut = plain_if_empty(options.in_cut, options.in);
  if (options.weight) {
    SP_EXPECT(options.weight->shape() == shape, "a tied weight has shape {}, {} was declared",
              fmt::join(options.weight->shape(), "x"), fmt::join(shape, "x"));
    weight_ = add_parameter("weight", options.weight);
  } else {
    weight_ =
        add_parameter("weight", std::make_shared<Parameter>(shape, std::vector{out_cut, in_cut}));
  }
  if (options.bias) {
    bias_ = add_parameter(
        "bias", std::make_shared<Parameter>(std::vector{options.out}, std::vector{out_cut}));
  }
}

InitialValues Linear::initial_values(const std::string& parameter) const {
  return {parameter == "bias" ? InitialValues::Kind::kZeros : InitialValues::Kind::kNormal};
}

NamedTensors Linear::forward(const NamedTensors& inputs) {
  const at::Tensor& input = inputs.at("input");
  const at::Tensor& weight = weight_->view();
  SP_EXPECT(weight.defined(), "{}: the weight is not placed yet", label());
  SP_EXPECT(input.size(-1) == weight.size(1),
            "{}: the input has width {}, the weight that is held takes {}", label(), input.size(-1),
            weight.size(1));
  const at::Tensor bias = bias_ ? bias_->view() : at::Tensor();
  return {{"output", at::linear(input, weight, bias)}};
}

}  // namespace shardproof
