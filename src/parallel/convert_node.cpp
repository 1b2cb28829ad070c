#include "parallel/convert_node.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "base/check.h"

namespace shardproof {

namespace {

struct ConvertBackward final : torch::autograd::Node {
  Placement from, to;
  AxisView axis;
  Site site;
  std::vector<int64_t> shape;  // of the gradient that arrives
  at::TensorOptions options;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::Tensor grad = grads.at(0).defined() ? grads[0] : at::zeros(shape, options);
    return {convert(grad, from, to, axis, site)};
  }
  std::string name() const override { return "ConvertBackward"; }
};

}  // namespace

at::Tensor convert_with_grad(const at::Tensor& value, const Edge& edge, Crossing crossing,
                             const AxisView& axis, Site site) {
  const bool in = crossing == Crossing::kIn;
  site.phase = "forward";
  at::Tensor result;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    result = convert(value, in ? edge.outside : edge.inside, in ? edge.inside : edge.outside, axis,
                     site);
  }
  if (result.is_same(value)) result = value.detach();
  if (at::GradMode::is_enabled() && value.requires_grad()) {
    auto node = c10::make_intrusive<ConvertBackward>();
    node->from = in ? edge.grad_inside : edge.grad_outside;
    node->to = in ? edge.grad_outside : edge.grad_inside;
    node->axis = axis;
    node->site = std::move(site);
    node->site.phase = "backward";
    node->shape = result.sizes().vec();
    node->options = result.options();
    node->set_next_edges(torch::autograd::collect_next_edges(value));
    torch::autograd::set_history(result, node);
  }
  return result;
}

}  // namespace shardproof
