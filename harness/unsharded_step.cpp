#include "harness/unsharded_step.h"

#include "harness/backward_order.h"
#include "harness/no_optimizer.h"
#include "train/trainer.h"

namespace shardproof {
namespace {

class KeepLogits final : public ModuleHook {
 public:
  void after(Module&, NamedTensors& outputs) override { logits = outputs.at("logits").detach(); }
  at::Tensor logits;
};

}  // namespace

UnshardedStep run_unsharded_step(const CommPtr& self, const ModelSource& model,
                                 at::ScalarType dtype, const Batch& batch) {
  PlacedModel placed = place_model(self, model, dtype, {});
  const auto hook = std::make_shared<KeepLogits>();
  placed.causal_lm.model->add_hook(hook);
  NoOptimizer optimizer(placed.causal_lm.model->all_parameters());
  const auto order = note_backward_order(optimizer.params());
  const StepResult result =
      train_step(*placed.causal_lm.model, optimizer, batch, placed.logits->loss(), *self, *self);

  UnshardedStep step{hook->logits, result.loss, result.grad_norm, {}};
  std::map<std::string, at::Tensor> gradients;
  for (const ParamPtr& parameter : optimizer.params()) {
    // One that is missing is shown as undefined; a frozen parameter has none.
    if (parameter->requires_grad) gradients[parameter->name()] = parameter->grad;
  }
  for (const std::string& name : *order)
    if (auto node = gradients.extract(name)) step.gradients.emplace_back(name, node.mapped());
  for (const auto& [name, gradient] : gradients) step.gradients.emplace_back(name, gradient);
  return step;
}

}  // namespace shardproof
