#include "parallel/unit_hook.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>

namespace shardproof {

namespace {

// Calls `fn` in backward before the gradient goes into the module whose outputs these are.
template <class Fn>
void before_backward_of(NamedTensors& outputs, const Fn& fn) {
  for (auto& [name, tensor] : outputs) {
    if (tensor.requires_grad()) {
      tensor.register_hook([fn](const at::Tensor&) { fn(); });
    }
  }
}

bool any_requires_grad(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.requires_grad()) return true;
  }
  return false;
}

}  // namespace

void UnitHook::before(Module&, NamedTensors&) { unit_->before_forward(); }

void UnitHook::after(Module&, NamedTensors& outputs) {
  const bool backward_follows = at::GradMode::is_enabled() && any_requires_grad(outputs);
  unit_->after_forward(backward_follows);
  if (backward_follows) before_backward_of(outputs, [unit = unit_] { unit->before_backward(); });
}

void RootHook::before(Module&, NamedTensors&) {
  for (const auto& unit : units_) unit->invalidate();
}

void RootHook::after(Module&, NamedTensors& outputs) {
  if (!at::GradMode::is_enabled()) return;
  before_backward_of(outputs, [units = units_] {
    torch::autograd::Engine::get_default_engine().queue_callback([units] {
      for (const auto& unit : units) unit->finish_backward();
    });
  });
}

}  // namespace shardproof
