#include "parallel/parallelize.h"

#include <ATen/core/grad_mode.h>

#include "base/check.h"
#include "base/names.h"
#include "parallel/edge_hook.h"
#include "parallel/unit_hook.h"

namespace shardproof {

namespace {

class Applier {
 public:
  Applier(Module& model, MeshPtr mesh, std::shared_ptr<const ResolvedPlan> plan,
          at::ScalarType dtype)
      : model_(model), mesh_(std::move(mesh)), plan_(std::move(plan)), dtype_(dtype) {
    for (Module* module : model_.modules()) modules_[module->path()] = module;
    for (const ParamPtr& parameter : model_.all_parameters())
      parameters_[parameter->name()] = parameter;
  }

  // The one documented order.
  void apply() {
    make_groups();
    for (const ResolvedParameter& resolved : plan_->parameters) place(resolved);
    attach_edges();
    attach_units();
  }

 private:
  // Process groups are made here, never at first use.
  void make_groups() {
    if (mesh_->size("fsdp") > 1) unit_comms_.fsdp = mesh_->group({"fsdp"});
    if (mesh_->size("dp_replicate") > 1) unit_comms_.dp_replicate = mesh_->group({"dp_replicate"});
    unit_comms_.fsdp_coordinate = mesh_->coordinate("fsdp");
    for (const ResolvedParameter& parameter : plan_->parameters)
      axis_of(parameter.axis, parameter.edge);
    for (const ResolvedModule& module : plan_->modules) {
      for (const ResolvedPort& port : module.inputs) axis_of(port.axis, port.edge);
      for (const ResolvedPort& port : module.outputs) axis_of(port.axis, port.edge);
    }
  }

  AxisView axis_of(const std::string& axis, const Edge& edge) {
    AxisView view{.comm = nullptr,
                  .block = nullptr,
                  .size = mesh_->size(axis),
                  .coordinate = mesh_->coordinate(axis)};
    if (view.size == 1) return view;
    view.comm = mesh_->group({axis});
    const int64_t block =
        edge.grad_inside.is_shard() ? copies_block_size(edge.grad_inside.cut, view.size) : 1;
    if (block > 1) view.block = mesh_->block(axis, block);
    return view;
  }

  void place(const ResolvedParameter& resolved) {
    Parameter& parameter = *parameters_.at(resolved.name);
    const MeshShape& shape = mesh_->shape();
    const Region kept_region =
        region_of(parameter.shape(), resolved.kept_placements, shape, mesh_->rank());
    const Region held =
        region_of(parameter.shape(), resolved.view_placements, shape, mesh_->rank());
    const auto options = at::TensorOptions().dtype(dtype_);
    at::Tensor kept = at::empty(local_shape(kept_region), options);
    const bool masked = resolved.edge.outside.is_replicate() && resolved.edge.inside.is_partial() &&
                        mesh_->coordinate(resolved.axis) != 0;
    at::Tensor view = kept;
    if (unit_comms_.fsdp) {
      // Sizes without storage, which the unit gives it: no rank ever holds the whole model.
      view = at::empty({0}, options);
      view.unsafeGetTensorImpl()->set_sizes_contiguous(local_shape(held));
    } else if (masked) {
      view = at::zeros(local_shape(held), options);
    }
    parameter.place(kept, kept_region, view, held);
    parameter.owned = is_owner(resolved.kept_placements, shape, mesh_->rank());
  }

  // The module around `path`: the nearest prefix that is one (a child's own name may have dots).
  std::string parent_of(std::string path) const {
    do {
      const size_t dot = path.rfind('.');
      path = dot == std::string::npos ? "" : path.substr(0, dot);
    } while (!path.empty() && !modules_.contains(path));
    return path;
  }

  void attach_edges() {
    if (mesh_->size("tp") == 1) return;
    std::map<std::string, std::shared_ptr<SharingScope>> scopes;
    for (const ResolvedModule& resolved : plan_->modules) {
      std::shared_ptr<SharingScope> scope;
      if (!resolved.path.empty()) {
        const std::string parent = parent_of(resolved.path);
        auto& slot = scopes[parent];
        if (!slot) {
          slot = std::make_shared<SharingScope>();
          modules_.at(parent)->add_hook(slot);
        }
        scope = slot;
      }
      const AxisView axis = axis_of("tp", {});
      modules_.at(resolved.path)->add_hook(std::make_shared<EdgeHook>(resolved, axis, scope));
    }
  }

  void attach_units() {
    std::vector<std::shared_ptr<Unit>> units;
    for (const ResolvedUnit& resolved : plan_->units) {
      std::vector<Unit::Item> items;
      for (const std::string& name : resolved.parameters)
        items.push_back(item(plan_->parameter(name)));
      auto unit = std::make_shared<Unit>(resolved, unit_comms_, std::move(items));
      unit->attach();
      units.push_back(unit);
    }
    for (const auto& unit : units) {
      if (!unit->resolved().parameters.empty()) {
        modules_.at(unit->resolved().path)->add_hook(std::make_shared<UnitHook>(unit));
      }
    }
    model_.add_hook(std::make_shared<RootHook>(std::move(units)));
  }

  Unit::Item item(const ResolvedParameter& resolved) {
    const ParamPtr& parameter = parameters_.at(resolved.name);
    Unit::Item item{.parameter = parameter,
                    .edge = resolved.edge,
                    .axis = axis_of(resolved.axis, resolved.edge),
                    .shape = parameter->view().sizes().vec(),
                    .rows = {}};
    SP_EXPECT(!item.shape.empty(), "{} is a scalar: give it one dim", resolved.name);
    for (int64_t c = 0; c < mesh_->size("fsdp"); ++c) {
      item.rows.push_back(total_size(cut_intervals({}, item.shape[0], mesh_->size("fsdp"), c)));
    }
    return item;
  }

  Module& model_;
  MeshPtr mesh_;
  std::shared_ptr<const ResolvedPlan> plan_;
  at::ScalarType dtype_;
  UnitComms unit_comms_;
  std::map<std::string, Module*> modules_;
  std::map<std::string, ParamPtr> parameters_;
};

}  // namespace

std::shared_ptr<const ResolvedPlan> parallelize(Module& model, const MeshPtr& mesh,
                                                const DistributedConfig& config,
                                                const ModelPlans& plans,
                                                const ParallelizeOptions& options) {
  config.validate();
  const MeshShape wanted = config.mesh();  // named: a range-for does not keep a temporary alive
  for (const MeshAxis& axis : wanted.axes()) {
    SP_EXPECT(mesh->size(axis.name) == axis.size, "the config has {}={}, the mesh {}={}", axis.name,
              axis.size, axis.name, mesh->size(axis.name));
  }
  at::NoGradGuard no_grad;
  auto plan = std::make_shared<ResolvedPlan>(resolve(model, mesh->shape(), config, plans));
  if (options.edit) options.edit(*plan);
  Applier(model, mesh, plan, options.dtype).apply();
  return plan;
}

}  // namespace shardproof
