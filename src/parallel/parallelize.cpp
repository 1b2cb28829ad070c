#include "parallel/parallelize.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/check.h"
#include "base/names.h"
#include "parallel/all_to_all_dispatcher.h"
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
    for (const char* axis : {"fsdp", "efsdp"}) {
      UnitComms comms{.fsdp = nullptr,
                      .dp_replicate = nullptr,
                      .fsdp_size = mesh_->size(axis),
                      .fsdp_coordinate = mesh_->coordinate(axis)};
      if (comms.fsdp_size > 1) comms.fsdp = mesh_->group({axis});
      if (mesh_->size("dp_replicate") > 1) comms.dp_replicate = mesh_->group({"dp_replicate"});
      unit_comms_.emplace(axis, std::move(comms));
    }
    for (const ResolvedParameter& parameter : plan_->parameters)
      axis_of(parameter.axis, parameter.edge);
    for (const ResolvedModule& module : plan_->modules) {
      for (const ResolvedPort& port : module.inputs) axis_of(port.axis, port.edge);
      for (const ResolvedPort& port : module.outputs) axis_of(port.axis, port.edge);
      if (module.dispatches) mesh_->group({"ep"});
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
    const bool masked = resolved.edge.masks(mesh_->coordinate(resolved.axis));
    at::Tensor view = kept;
    if (unit_comms_.at(resolved.data_axis()).fsdp) {
      // Sizes without storage, which the unit gives it: no rank ever holds the whole model.
      view = at::empty({0}, options);
      view.unsafeGetTensorImpl()->set_sizes_contiguous(local_shape(held));
    } else if (masked) {
      view = at::zeros(local_shape(held), options);
    }
    parameter.place(kept, kept_region, view, held);
    parameter.owned =
        owned_region(parameter.shape(), resolved.kept_placements, shape, mesh_->rank());
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
    if (mesh_->size("tp") == 1 && mesh_->size("ep") == 1) return;
    std::map<std::string, std::shared_ptr<SharingScope>> scopes;
    const auto tokens = std::make_shared<TokenCount>();
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
      const std::string axis = resolved.inputs.empty() ? "tp" : resolved.inputs.front().axis;
      modules_.at(resolved.path)
          ->add_hook(std::make_shared<EdgeHook>(resolved, axis_of(axis, {}), scope, tokens));
      if (resolved.dispatches) dispatch(*modules_.at(resolved.path));
    }
    if (uses_tokens()) model_.add_hook(tokens);
  }

  // Gives the module what moves tokens to the ranks that hold their experts.
  void dispatch(Module& module) {
    auto* experts = dynamic_cast<DispatchesExperts*>(&module);
    SP_EXPECT(experts != nullptr, "{} has no experts to dispatch to", module.label());
    for (const ResolvedParameter& resolved : plan_->parameters) {
      if (resolved.axis != "ep" || !resolved.name.starts_with(module.path() + ".")) continue;
      const Parameter& parameter = *parameters_.at(resolved.name);
      experts->set_dispatcher(std::make_shared<AllToAllDispatcher>(
          mesh_->group({"ep"}), parameter.cut(0), parameter.shape()[0], module.path()));
      return;
    }
    SP_VALIDATE(false,
                "{}: its tokens are dispatched over ep, but none of its parameters is cut over ep: "
                "give them the style grouped_gemm",
                module.label());
  }

  bool uses_tokens() const {
    for (const ResolvedModule& module : plan_->modules) {
      for (const auto* ports : {&module.inputs, &module.outputs}) {
        for (const ResolvedPort& port : *ports) {
          const Edge& edge = port.edge;
          if (is_cut_by_tokens(edge.outside) || is_cut_by_tokens(edge.inside)) return true;
        }
      }
    }
    return false;
  }

  void attach_units() {
    std::vector<std::shared_ptr<Unit>> units;
    for (const ResolvedUnit& resolved : plan_->units) {
      std::vector<Unit::Item> items;
      for (const std::string& name : resolved.parameters)
        items.push_back(item(plan_->parameter(name), unit_comms_.at(resolved.data_axis).fsdp_size));
      auto unit =
          std::make_shared<Unit>(resolved, unit_comms_.at(resolved.data_axis), std::move(items));
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

  Unit::Item item(const ResolvedParameter& resolved, int64_t parts) {
    const ParamPtr& parameter = parameters_.at(resolved.name);
    Unit::Item item{.parameter = parameter,
                    .edge = resolved.edge,
                    .axis = axis_of(resolved.axis, resolved.edge),
                    .shape = parameter->view().sizes().vec(),
                    .rows = {}};
    SP_EXPECT(!item.shape.empty(), "{} is a scalar: give it one dim", resolved.name);
    for (int64_t c = 0; c < parts; ++c)
      item.rows.push_back(total_size(cut_intervals({}, item.shape[0], parts, c)));
    return item;
  }

  Module& model_;
  MeshPtr mesh_;
  std::shared_ptr<const ResolvedPlan> plan_;
  at::ScalarType dtype_;
  std::map<std::string, UnitComms> unit_comms_;  // by the axis that parameters are cut over
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
  SP_EXPECT(mesh->size("ep") == config.ep_size,
            "the config has ep={}, the mesh {}: make it of DistributedConfig::mesh()",
            config.ep_size, mesh->size("ep"));
  at::NoGradGuard no_grad;
  auto plan = std::make_shared<ResolvedPlan>(resolve(model, mesh->shape(), config, plans));
  if (options.edit) options.edit(*plan);
  Applier(model, mesh, plan, options.dtype).apply();
  return plan;
}

}  // namespace shardproof
