#include "harness/backward_order.h"

#include <torch/csrc/autograd/variable.h>

namespace shardproof {

std::shared_ptr<const std::vector<std::string>> note_backward_order(
    const std::vector<ParamPtr>& params) {
  auto order = std::make_shared<std::vector<std::string>>();
  for (const ParamPtr& parameter : params) {
    if (!parameter->requires_grad) continue;
    // The hook stays on the view for life; what it notes for does not.
    parameter->view().register_hook(
        [weak = std::weak_ptr(order), name = parameter->name()](const at::Tensor&) {
          if (const auto notes = weak.lock()) notes->push_back(name);
        });
  }
  return order;
}

}  // namespace shardproof
