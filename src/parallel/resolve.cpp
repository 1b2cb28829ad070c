#include "parallel/resolve.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/names.h"
#include "base/starred_name.h"
#include "parallel/flow.h"
#include "parallel/rules_in_force.h"
#include "parallel/spot.h"

namespace shardproof {

namespace {

const EdgeStyle* find(const std::vector<EdgeStyle>& edges, const std::string& name) {
  const auto hit = std::find_if(edges.begin(), edges.end(), [&](const EdgeStyle& e) {
    return e.name == name || e.name == "*";
  });
  return hit == edges.end() ? nullptr : &*hit;
}

class Resolver {
 public:
  Resolver(Module& model, const MeshShape& mesh, bool sequence_parallel) : model_(model) {
    plan_.mesh = mesh;
    plan_.sequence_parallel = sequence_parallel && mesh.size("tp") > 1;
  }

  void apply_rules(const std::vector<RuleInForce>& rules) {
    for (const auto& [rule, means] : rules) {
      const Style* style = shipped_styles().find(means);
      if (style == nullptr) {
        unknown_style(rule);
        continue;
      }
      bool matched = false;
      for (Module* module : model_.modules()) {
        if (pattern_matches(rule.pattern, module->path())) {
          matched = true;
          apply(rule, *style, *module);
        }
        for (const auto& [name, parameter] : module->parameters()) {
          if (!pattern_matches(rule.pattern, join_name(module->path(), name))) continue;
          matched = true;
          apply_bare(rule, *style, *module, name, *parameter);
        }
      }
      if (!matched) unmatched(rule);
    }
  }

  void fsdp(const Plan& rules) {
    plan_.units.push_back({.path = "", .free_after_forward = false, .parameters = {}});
    for (const PlanRule& rule : rules) {
      if (rule.style != "free_full_weight" && rule.style != "keep_full_weight") {
        add(wrong_rule("unknown-style", rule, "",
                       ": an FSDP rule is free_full_weight or keep_full_weight"));
        continue;
      }
      bool matched = false;
      for (Module* module : model_.modules()) {
        if (!pattern_matches(rule.pattern, module->path())) continue;
        matched = true;
        if (wrapped_.insert(module->path()).second) {
          plan_.units.push_back({.path = module->path(),
                                 .free_after_forward = rule.style == "free_full_weight",
                                 .parameters = {}});
        } else {
          add(wrong_rule(
              "matched-twice", rule, module->path(),
              fmt::format("matches {}, which another FSDP rule matched already", module->path())));
        }
      }
      if (!matched) unmatched(rule);
    }
  }

  ResolvedPlan finish() {
    check_tied();
    for (const ParamPtr& parameter : model_.all_parameters()) add(*parameter);
    // A unit without parameters (all of them tied into the root unit) does nothing.
    std::erase_if(plan_.units,
                  [](const ResolvedUnit& u) { return !u.path.empty() && u.parameters.empty(); });
    if (plan_.mesh.size("tp") > 1 || plan_.mesh.size("ep") > 1) trace_flow(model_, plan_);
    return std::move(plan_);
  }

 private:
  void add(Finding finding) { plan_.findings.push_back(std::move(finding)); }

  void unknown_style(const PlanRule& rule) {
    const std::string near = shipped_styles().nearest(rule.style);
    add(wrong_rule("unknown-style", rule, "",
                   near.empty()
                       ? fmt::format(": the style is unknown; known are {}",
                                     fmt::join(shipped_styles().names(), ", "))
                       : fmt::format(": the style is unknown; did you mean \"{}\"?", near)));
  }

  // A rule for a head that is tied to the embedding, or for biases that a config switched off, has
  // nothing to do; only a rule that a user wrote must match.
  void unmatched(const PlanRule& rule) {
    std::set<std::string> patterns;
    for (const Module* module : model_.modules())
      if (!module->path().empty()) patterns.insert(starred(module->path()).pattern);
    const std::string longer = "model." + rule.pattern;
    const std::string near = patterns.contains(longer)
                                 ? longer
                                 : nearest_word(rule.pattern, {patterns.begin(), patterns.end()});
    add(about_rule("unmatched", rule, "",
                   fmt::format("matches no module and no parameter of this model{}",
                               near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near))));
  }

  // False, with a finding, where another rule was there before.
  bool claim(const PlanRule& rule, const std::string& path) {
    const auto [at, fresh] = styled_.try_emplace(path, rule);
    if (!fresh)
      add(wrong_rule("matched-twice", rule, path,
                     fmt::format("matches {}, which {} matched already: keep one of them", path,
                                 named(at->second))));
    return fresh;
  }

  void misfit(const PlanRule& rule, const std::string& subject, const std::string& why) {
    add(wrong_rule("misfit", rule, subject, fmt::format("does not fit {}{}", subject, why)));
  }

  // Whether a style for packed weights has something to do; else a finding.
  bool is_packed(const PlanRule& rule, const EdgeStyle& edge, const Parameter& parameter) {
    const int64_t dim = cut_dim(edge.outside, parameter);
    if (dim < 0 || parameter.cut(dim).sections.size() > 1) return true;
    misfit(rule, parameter.name(),
           fmt::format(": dim {} of its {} packs nothing, it is one section of {}", dim,
                       fmt::join(parameter.shape(), "x"), parameter.shape()[dim]));
    return false;
  }

  void apply(const PlanRule& rule, const Style& style, Module& module) {
    if (!style.fits.empty() &&
        std::find(style.fits.begin(), style.fits.end(), module.type()) == style.fits.end()) {
      misfit(
          rule, module.path(),
          fmt::format(", a {}: the style is for {}", module.type(), fmt::join(style.fits, ", ")));
      return;
    }
    if (style.packed) {
      for (const auto& [name, parameter] : module.parameters()) {
        const EdgeStyle* edge = find(style.parameters, name);
        if (edge != nullptr && !is_packed(rule, *edge, *parameter)) return;
      }
    }
    if (!claim(rule, module.path())) return;
    ResolvedModule resolved{.path = module.path(),
                            .style = style.name,
                            .rule = rule,
                            .inputs = {},
                            .outputs = {},
                            .passes = style.passes,
                            .dispatches = style.dispatches};
    try {
      for (const Port& port : module.signature().inputs) {
        if (const EdgeStyle* edge = find(style.inputs, port.name))
          resolved.inputs.push_back(
              {port.name, style.axis, port_edge(*edge, module, port, style.axis)});
      }
      for (const Port& port : module.signature().outputs) {
        if (const EdgeStyle* edge = find(style.outputs, port.name))
          resolved.outputs.push_back(
              {port.name, style.axis, port_edge(*edge, module, port, style.axis)});
      }
    } catch (const Misfit& why) {
      misfit(rule, module.path(), fmt::format(" ({}): {}", module.type(), why.why));
      return;
    }
    if (!style.inputs.empty() && resolved.inputs.empty()) {
      std::vector<std::string> wanted;
      for (const EdgeStyle& edge : style.inputs) wanted.push_back(edge.name);
      misfit(rule, module.path(),
             fmt::format(", a {}: it has none of the inputs {}", module.type(),
                         fmt::join(wanted, ", ")));
      return;
    }
    try {
      for (const auto& [name, parameter] : module.parameters()) {
        if (const EdgeStyle* edge = find(style.parameters, name)) {
          set_edge(rule, style, *parameter, parameter_edge(*edge, *parameter, style.axis));
          edged_.insert({module.path(), name});
        }
      }
    } catch (const Misfit& why) {
      misfit(rule, module.path(), fmt::format(" ({}): {}", module.type(), why.why));
      return;
    }
    plan_.modules.push_back(std::move(resolved));
  }

  void apply_bare(const PlanRule& rule, const Style& style, const Module& module,
                  const std::string& name, const Parameter& parameter) {
    const std::string path = join_name(module.path(), name);
    if (!style.bare) {
      misfit(rule, path, ", a parameter: the style is for modules");
      return;
    }
    if (style.packed && !is_packed(rule, *style.bare, parameter)) return;
    if (!claim(rule, path)) return;
    try {
      set_edge(rule, style, parameter, parameter_edge(*style.bare, parameter, style.axis));
    } catch (const Misfit& why) {
      misfit(rule, path, ": " + why.why);
      return;
    }
    edged_.insert({module.path(), name});
  }

  Edge port_edge(const EdgeStyle& edge, const Module& module, const Port& port,
                 const std::string& axis) const {
    return edge_at_port(edge, module, port, plan_.mesh.size(axis), plan_.sequence_parallel);
  }

  Edge parameter_edge(const EdgeStyle& edge, const Parameter& parameter,
                      const std::string& axis) const {
    return edge_at_parameter(edge, parameter, plan_.mesh.size(axis), plan_.sequence_parallel);
  }

  void set_edge(const PlanRule& rule, const Style& style, const Parameter& parameter,
                const Edge& edge) {
    const auto [at, fresh] =
        edges_.try_emplace(parameter.name(), EdgeOf{rule, style.name, style.axis, edge});
    if (!fresh && (at->second.edge != edge || at->second.axis != style.axis))
      add(wrong_rule("tied", rule, parameter.name(),
                     fmt::format("and {} treat the tied parameter {} differently: give its modules "
                                 "rules that agree",
                                 named(at->second.rule), parameter.name())));
  }

  // Where one of the modules that share a parameter is cut, all of them must be.
  void check_tied() {
    for (Module* module : model_.modules()) {
      for (const auto& [name, parameter] : module->parameters()) {
        const auto cut = edges_.find(parameter->name());
        if (cut == edges_.end() || edged_.contains({module->path(), name})) continue;
        add(wrong_rule("tied", cut->second.rule, parameter->name(),
                       fmt::format("cuts the tied parameter {}, which {} uses whole: give both "
                                   "modules rules that agree",
                                   parameter->name(), module->path())));
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
                               .rule = {},
                               .edge = {},
                               .view_placements = {},
                               .kept_placements = {},
                               .unit = ""};
    if (const auto rule = edges_.find(parameter.name()); rule != edges_.end()) {
      resolved.style = rule->second.style;
      resolved.rule = rule->second.rule;
      resolved.axis = rule->second.axis;
      resolved.edge = rule->second.edge;
    }
    if (plan_.mesh.size(resolved.axis) > 1) {
      if (resolved.edge.inside.is_shard())
        resolved.view_placements.push_back({resolved.axis, resolved.edge.inside});
      if (resolved.edge.outside.is_shard())
        resolved.kept_placements.push_back({resolved.axis, resolved.edge.outside});
    }
    const std::string data_axis = resolved.data_axis();
    if (plan_.mesh.size(data_axis) > 1) resolved.kept_placements.push_back({data_axis, shard(0)});
    // A parameter that several units use belongs to the root unit, which stays gathered.
    std::set<size_t> units;
    for (const std::string& name : parameter.names()) units.insert(unit_of(name));
    ResolvedUnit& unit = unit_over(units.size() == 1 ? *units.begin() : 0, data_axis);
    resolved.unit = unit.path;
    unit.parameters.push_back(parameter.name());
    plan_.parameters.push_back(std::move(resolved));
  }

  // The unit at the same module whose parameters are cut over this axis, made where it is missing.
  ResolvedUnit& unit_over(size_t index, const std::string& data_axis) {
    if (plan_.units[index].data_axis == data_axis) return plan_.units[index];
    for (ResolvedUnit& unit : plan_.units)
      if (unit.path == plan_.units[index].path && unit.data_axis == data_axis) return unit;
    ResolvedUnit made = plan_.units[index];
    made.data_axis = data_axis;
    made.parameters.clear();
    plan_.units.push_back(std::move(made));
    return plan_.units.back();
  }

  struct EdgeOf {
    PlanRule rule;
    std::string style;
    std::string axis;
    Edge edge;
  };

  Module& model_;
  ResolvedPlan plan_;
  std::map<std::string, PlanRule> styled_;  // by path of a module or bare parameter
  std::set<std::string> wrapped_;
  std::set<std::pair<std::string, std::string>> edged_;  // module path, local name of a parameter
  std::map<std::string, EdgeOf> edges_;                  // by parameter
};

Placement placement_at(const std::map<std::pair<std::string, std::string>, Placement>& ports,
                       const std::string& path, const std::string& name) {
  const auto hit = ports.find({path, name});
  return hit == ports.end() ? replicate() : hit->second;
}

}  // namespace

const ResolvedParameter& ResolvedPlan::parameter(const std::string& name) const {
  for (const ResolvedParameter& parameter : parameters) {
    if (parameter.name == name) return parameter;
  }
  SP_EXPECT(false, "no parameter {} in the resolved plan", name);
}

Placement ResolvedPlan::input(const std::string& path, const std::string& name) const {
  return placement_at(inputs, path, name);
}

Placement ResolvedPlan::output(const std::string& path, const std::string& name) const {
  return placement_at(outputs, path, name);
}

ResolvedPlan resolve_with_findings(Module& model, const MeshShape& mesh,
                                   const DistributedConfig& config, const ModelPlans& plans) {
  Resolver resolver(model, mesh, config.enable_sequence_parallel);
  const RulesInForce rules = rules_in_force(config, plans, mesh);
  resolver.apply_rules(rules.tp);
  resolver.apply_rules(rules.ep);
  resolver.fsdp(rules.fsdp);
  return resolver.finish();
}

ResolvedPlan resolve(Module& model, const MeshShape& mesh, const DistributedConfig& config,
                     const ModelPlans& plans) {
  ResolvedPlan plan = resolve_with_findings(model, mesh, config, plans);
  throw_errors(plan.findings);
  return plan;
}

}  // namespace shardproof
