#include "harness/faults.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "comm/forwarding.h"
#include "tensor/dtensor.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

class DroppingCommunicator final : public ForwardingCommunicator {
 public:
  using Count = std::shared_ptr<std::atomic<int64_t>>;

  DroppingCommunicator(CommPtr inner, std::string module, std::string phase, Count dropped)
      : ForwardingCommunicator(std::move(inner)),
        module_(std::move(module)),
        phase_(std::move(phase)),
        dropped_(std::move(dropped)) {}

  Work all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) override {
    if (site.module != module_ || site.phase != phase_)
      return ForwardingCommunicator::all_reduce(std::move(out), std::move(in), op, site);
    ++*dropped_;
    if (!out.is_same(in)) out.copy_(in);
    return {};
  }

 protected:
  CommPtr wrap(CommPtr made) override {
    return std::make_shared<DroppingCommunicator>(std::move(made), module_, phase_, dropped_);
  }

 private:
  std::string module_, phase_;
  Count dropped_;
};

}  // namespace

Fault drop_all_reduce(std::string module, std::string phase) {
  Fault fault;
  fault.seams.world = [module, phase, dropped = fault.met](CommPtr world) -> CommPtr {
    return std::make_shared<DroppingCommunicator>(std::move(world), module, phase, dropped);
  };
  fault.seams.model = [module](PlacedModel& placed) {
    for (const Module* candidate : placed.causal_lm.model->modules())
      if (candidate->path() == module) return;
    throw InputError(fmt::format("fault: the model has no module '{}'", module));
  };
  return fault;
}

Fault shift_rows(std::string parameter, int64_t by) {
  Fault fault;
  fault.seams.model = [parameter, by, met = fault.met](PlacedModel& placed) {
    const at::NoGradGuard no_grad;
    for (const ParamPtr& candidate : placed.causal_lm.model->all_parameters()) {
      if (candidate->name() != parameter) continue;
      const Placements& placements = placed.plan->parameter(parameter).kept_placements;
      const DTensor kept{candidate->kept(), candidate->shape(), placed.mesh, placements};
      const at::Tensor shifted = at::roll(full(kept, {parameter, "rows", "setup"}), -by, 0);
      candidate->kept().copy_(
          take(shifted, whole_region(candidate->shape()), candidate->kept_region()));
      if (by % candidate->shape()[0] != 0) ++*met;
      return;
    }
    throw InputError(fmt::format("fault: the model has no parameter '{}'", parameter));
  };
  return fault;
}

Fault count_tokens_over_world() {
  Fault fault;
  fault.seams.data = [met = fault.met](CommPtr data, CommPtr world) {
    if (data->size() != world->size()) ++*met;
    return world;
  };
  return fault;
}

Fault planted(const FaultSpec& fault) {
  if (fault.kind == "drop_all_reduce") return drop_all_reduce(fault.at);
  if (fault.kind == "shift_rows") return shift_rows(fault.at, fault.by);
  if (fault.kind == "count_tokens_over_world") return count_tokens_over_world();
  SP_EXPECT(fault.kind.empty(), "'{}' is no fault", fault.kind);
  return {};
}

void check_met(const FaultSpec& spec, const Fault& fault) {
  SP_VALIDATE(spec.kind.empty() || *fault.met > 0,
              "the fault {}{} touched nothing: this layout does nothing that it could change",
              spec.kind, spec.at.empty() ? "" : fmt::format(" at '{}'", spec.at));
}

}  // namespace shardproof
