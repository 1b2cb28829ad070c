#include "parallel/resolve.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/names.h"
#include "parallel/style.h"

namespace shardproof {

namespace {

std::string named(const PlanRule& rule) {
  return fmt::format("{}rule \"{}\": \"{}\"", rule.origin.empty() ? "" : rule.origin + ": ",
                     rule.pattern, rule.style);
}

// The rules that hold. Those that a user gave carry an origin from here on: they must match.
Plan effective(const Plan& shipped, std::optional<Plan> given, const std::string& field) {
  if (!given) return shipped;
  for (PlanRule& rule : *given) {
    if (rule.origin.empty()) rule.origin = field;
  }
  return given->empty() ? Plan{} : merged(shipped, *given);
}

Placement at_port(Spot spot, const Module& module, const Port& port, const PlanRule& rule) {
  switch (spot) {
    case Spot::kWhole:
      return replicate();
    case Spot::kAddend:
      return partial();
    case Spot::kFeature: {
      const ParamPtr followed = module.parameter(port.parameter);
      SP_VALIDATE(followed != nullptr, "{}: {} of {} ({}) follows no parameter and cannot be cut",
                  named(rule), port.name, module.path(), module.type());
      Cut cut = followed->cut(port.parameter_dim);
      if (cut.sections.empty()) cut = Cut::plain(followed->shape().at(port.parameter_dim));
      return shard(-1, std::move(cut));
    }
    case Spot::kDim0:
    case Spot::kDim1:
      break;
  }
  SP_EXPECT(false, "style {} puts a parameter's placement on {}", rule.style, port.name);
}

Placement at_parameter(Spot spot, const Parameter& parameter) {
  switch (spot) {
    case Spot::kWhole:
      return replicate();
    case Spot::kAddend:
      return partial();
    case Spot::kDim0:
      return shard(0, parameter.cut(0));
    case Spot::kDim1:
      return shard(1, parameter.cut(1));
    case Spot::kFeature:
      break;
  }
  SP_EXPECT(false, "a parameter has no features to follow");
}

const EdgeStyle* find(const std::vector<EdgeStyle>& edges, const std::string& name) {
  const auto hit =
      std::find_if(edges.begin(), edges.end(), [&](const EdgeStyle& e) { return e.name == name; });
  return hit == edges.end() ? nullptr : &*hit;
}

class Resolver {
 public:
  Resolver(Module& model, const MeshShape& mesh) : model_(model) { plan_.mesh = mesh; }

  void tensor_parallel(const Plan& rules) {
    for (const PlanRule& rule : rules) {
      const Style& style = shipped_styles().find(rule);
      bool matched = false;
      for (Module* module : model_.modules()) {
        if (!pattern_matches(rule.pattern, module->path())) continue;
        matched = true;
        apply(rule, style, *module);
      }
      // A rule for a head that is tied to the embedding, or for biases that a config switched off,
      // has nothing to do; only a rule that a user wrote must match.
      SP_VALIDATE(matched || rule.origin.empty(), "{} matches no module of this model",
                  named(rule));
    }
  }

  void fsdp(const Plan& rules) {
    plan_.units.push_back({.path = "", .free_after_forward = false, .parameters = {}});
    for (const PlanRule& rule : rules) {
      SP_VALIDATE(rule.style == "free_full_weight" || rule.style == "keep_full_weight",
                  "{}: an FSDP rule is free_full_weight or keep_full_weight", named(rule));
      bool matched = false;
      for (Module* module : model_.modules()) {
        if (!pattern_matches(rule.pattern, module->path())) continue;
        matched = true;
        SP_VALIDATE(wrapped_.insert(module->path()).second,
                    "{} matches {}, which another FSDP rule matched already", named(rule),
                    module->path());
        plan_.units.push_back({module->path(), rule.style == "free_full_weight", {}});
      }
      SP_VALIDATE(matched || rule.origin.empty(), "{} matches no module of this model",
                  named(rule));
    }
  }

  ResolvedPlan finish() {
    check_tied();
    for (const ParamPtr& parameter : model_.all_parameters()) add(*parameter);
    // A unit without parameters (all of them tied into the root unit) does nothing.
    std::erase_if(plan_.units,
                  [](const ResolvedUnit& u) { return !u.path.empty() && u.parameters.empty(); });
    return std::move(plan_);
  }

 private:
  void apply(const PlanRule& rule, const Style& style, Module& module) {
    SP_VALIDATE(style.fits.empty() || std::find(style.fits.begin(), style.fits.end(),
                                                module.type()) != style.fits.end(),
                "{} does not fit {}, a {}: the style is for {}", named(rule), module.path(),
                module.type(), fmt::join(style.fits, ", "));
    SP_VALIDATE(styled_.insert(module.path()).second,
                "{} matches {}, which another rule matched already", named(rule), module.path());
    ResolvedModule resolved{
        .path = module.path(), .style = style.name, .inputs = {}, .outputs = {}};
    for (const Port& port : module.signature().inputs) {
      if (const EdgeStyle* edge = find(style.inputs, port.name)) {
        resolved.inputs.push_back({port.name, "tp", port_edge(*edge, module, port, rule)});
      }
    }
    for (const Port& port : module.signature().outputs) {
      if (const EdgeStyle* edge = find(style.outputs, port.name)) {
        resolved.outputs.push_back({port.name, "tp", port_edge(*edge, module, port, rule)});
        const Placement& outside = resolved.outputs.back().edge.outside;
        if (!outside.is_replicate()) plan_.outputs[{module.path(), port.name}] = outside;
      }
    }
    for (const auto& [name, parameter] : module.parameters()) {
      if (const EdgeStyle* edge = find(style.parameters, name)) {
        set_edge(rule, *parameter, parameter_edge(*edge, *parameter));
        edged_.insert({module.path(), name});
      }
    }
    plan_.modules.push_back(std::move(resolved));
  }

  static Edge port_edge(const EdgeStyle& e, const Module& module, const Port& port,
                        const PlanRule& rule) {
    return {at_port(e.outside, module, port, rule), at_port(e.inside, module, port, rule),
            at_port(e.grad_inside, module, port, rule),
            at_port(e.grad_outside, module, port, rule)};
  }

  Edge parameter_edge(const EdgeStyle& e, const Parameter& parameter) const {
    Edge edge{at_parameter(e.outside, parameter), at_parameter(e.inside, parameter),
              at_parameter(e.grad_inside, parameter), at_parameter(e.grad_outside, parameter)};
    if (edge.grad_inside.is_shard() &&
        copies_block_size(edge.grad_inside.cut, plan_.mesh.size("tp")) > 1) {
      edge.grad_inside.kind = Placement::Kind::kAddends;
    }
    return edge;
  }

  void set_edge(const PlanRule& rule, const Parameter& parameter, Edge edge) {
    const auto [at, fresh] = edges_.try_emplace(parameter.name(), std::pair{rule, edge});
    SP_VALIDATE(
        fresh || at->second.second == edge,
        "{} and {} treat the tied parameter {} differently: give its modules rules that agree",
        named(rule), named(at->second.first), parameter.name());
  }

  // Where one of the modules that share a parameter is cut, all of them must be.
  void check_tied() const {
    for (Module* module : model_.modules()) {
      for (const auto& [name, parameter] : module->parameters()) {
        const auto cut = edges_.find(parameter->name());
        if (cut == edges_.end() || edged_.contains({module->path(), name})) continue;
        throw InputError(
            fmt::format("{} cuts the tied parameter {}, which {} uses whole: give both modules "
                        "rules that agree",
                        named(cut->second.first), parameter->name(), module->path()));
      }
    }
  }

  // The index in plan_.units of the innermost unit around a parameter of this name.
  size_t unit_of(const std::string& name) const {
    size_t best = 0;
    for (size_t i = 1; i < plan_.units.size(); ++i) {
      const std::string& path = plan_.units[i].path;
      if (name.starts_with(path + ".") && path.size() > plan_.units[best].path.size()) best = i;
    }
    return best;
  }

  void add(const Parameter& parameter) {
    ResolvedParameter resolved{.name = parameter.name(),
                               .axis = "tp",
                               .style = "",
                               .edge = {},
                               .view_placements = {},
                               .kept_placements = {},
                               .unit = ""};
    if (const auto rule = edges_.find(parameter.name()); rule != edges_.end()) {
      resolved.style = rule->second.first.style;
      resolved.edge = rule->second.second;
    }
    if (plan_.mesh.size("tp") > 1) {
      if (resolved.edge.inside.is_shard())
        resolved.view_placements.push_back({"tp", resolved.edge.inside});
      if (resolved.edge.outside.is_shard())
        resolved.kept_placements.push_back({"tp", resolved.edge.outside});
    }
    if (plan_.mesh.size("fsdp") > 1) resolved.kept_placements.push_back({"fsdp", shard(0)});
    // A parameter that several units use belongs to the root unit, which stays gathered.
    std::set<size_t> units;
    for (const std::string& name : parameter.names()) units.insert(unit_of(name));
    ResolvedUnit& unit = plan_.units[units.size() == 1 ? *units.begin() : 0];
    resolved.unit = unit.path;
    unit.parameters.push_back(parameter.name());
    plan_.parameters.push_back(std::move(resolved));
  }

  Module& model_;
  ResolvedPlan plan_;
  std::set<std::string> styled_, wrapped_;
  std::set<std::pair<std::string, std::string>> edged_;  // module path, local name of a parameter
  std::map<std::string, std::pair<PlanRule, Edge>> edges_;
};

}  // namespace

const ResolvedParameter& ResolvedPlan::parameter(const std::string& name) const {
  for (const ResolvedParameter& parameter : parameters) {
    if (parameter.name == name) return parameter;
  }
  SP_EXPECT(false, "no parameter {} in the resolved plan", name);
}

Placement ResolvedPlan::output(const std::string& path, const std::string& name) const {
  const auto hit = outputs.find({path, name});
  return hit == outputs.end() ? replicate() : hit->second;
}

ResolvedPlan resolve(Module& model, const MeshShape& mesh, const DistributedConfig& config,
                     const ModelPlans& plans) {
  Resolver resolver(model, mesh);
  if (mesh.size("tp") > 1) resolver.tensor_parallel(effective(plans.tp, config.tp_plan, "tp_plan"));
  resolver.fsdp(effective(plans.fsdp, config.fsdp_plan, "fsdp_plan"));
  return resolver.finish();
}

}  // namespace shardproof
