#include "parallel/flow.h"

#include <numeric>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

// A port of a module, or one section of it, as its caller sees it or (`inside`, of containers) as
// its own code does.
struct Node {
  std::string path;
  std::string port;
  bool input = false;
  bool inside = false;
  int64_t section = -1;
  auto operator<=>(const Node&) const = default;
};

// What a module's own style, or the lack of one, says of a port.
struct Said {
  Placement placement;
  const ResolvedModule* module = nullptr;  // nullptr: no rule
};

std::string label(const Node& node) {
  return fmt::format("{} \"{}\" of {}", node.input ? "input" : "output", node.port,
                     node.path.empty() ? "the model" : node.path);
}

// Placements as a user reads them.
std::string shown(const Placement& placement) {
  if (placement.is_replicate()) return "whole";
  if (placement.is_partial()) return "as addends, still to be summed";
  if (is_cut_by_tokens(placement)) return "cut by tokens";
  return "cut by features";
}

class Flow {
 public:
  Flow(Module& model, ResolvedPlan& plan) : model_(model), plan_(plan) {
    for (const ResolvedModule& module : plan.modules) ruled_[module.path] = &module;
    for (const ResolvedParameter& parameter : plan.parameters)
      parameters_[parameter.name] = &parameter;
  }

  void trace() {
    for (Module* module : model_.modules()) take_in(*module);
    for (Module* module : model_.modules()) {
      for (const Link& link : module->links()) connect(*module, link);
    }
    for (const auto& [from, to] : unions_) unite(from, to);
    settle();
    for (const auto& [from, to] : together_) check_together(from, to);
    for (const auto& [from, to] : to_heads_) check_to_heads(from, to);
    for (Module* module : model_.modules()) check_parts(*module);
    store();
  }

 private:
  size_t index(const Node& node) {
    const auto [at, fresh] = index_.try_emplace(node, parents_.size());
    if (fresh) {
      parents_.push_back(parents_.size());
      nodes_.push_back(node);
    }
    return at->second;
  }
  size_t root(size_t i) const {
    while (parents_[i] != i) i = parents_[i];
    return i;
  }
  void unite(const Node& a, const Node& b) { parents_[root(index(b))] = root(index(a)); }

  void take_in(const Module& module) {
    const auto rule = ruled_.find(module.path());
    const ResolvedModule* ruled = rule == ruled_.end() ? nullptr : rule->second;
    const bool container = !module.children().empty();
    // What nothing is said of passes on what it gets; a container is what its links make it.
    const bool passes =
        container || (ruled != nullptr ? ruled->passes : module.parameters().empty());
    std::optional<Node> first;
    const auto port = [&](const Port& port, bool input) {
      const Node node{module.path(), port.name, input};
      const Node inside{module.path(), port.name, input, true};
      index(node);
      if (container) index(inside);
      if (ruled != nullptr) {
        for (const ResolvedPort& edged : input ? ruled->inputs : ruled->outputs) {
          if (edged.name != port.name) continue;
          said_[node] = {edged.edge.outside, ruled};
          if (container) said_[inside] = {edged.edge.inside, ruled};
          return;
        }
      }
      if (container) {
        unions_.emplace_back(node, inside);
      } else if (!passes) {
        said_[node] = {replicate(), ruled};
      } else {
        if (first) unions_.emplace_back(*first, node);
        first = node;
      }
    };
    for (const Port& input : module.signature().inputs) port(input, true);
    for (const Port& output : module.signature().outputs) port(output, false);
  }

  Node node_of(const Module& module, const LinkEnd& end, bool from) const {
    // A value enters through the module's own input and leaves through its output; of children it
    // is the other way round.
    if (end.child.empty()) return {module.path(), end.port, from, true, end.section};
    return {join_name(module.path(), end.child), end.port, !from, false, end.section};
  }

  void connect(const Module& module, const Link& link) {
    const Node from = node_of(module, link.from, true);
    // Of two values that go together the module's code reads both, or makes one of the other.
    const bool read = link.together || link.to_heads;
    Node to = node_of(module, link.to, read);
    if (read && to.section < 0 && !index_.contains(to)) to = node_of(module, link.to, false);
    for (const Node& node : {from, to}) {
      if (node.section >= 0) take_section(node);
      SP_EXPECT(index_.contains(node), "{}: a link names the {}, which is none", module.label(),
                label(node));
    }
    if (link.to_heads) {
      to_heads_.emplace_back(from, to);
    } else if (link.together) {
      together_.emplace_back(from, to);
    } else {
      unions_.emplace_back(from, to);
    }
  }

  // A section lies as its port, with its part of the cut.
  void take_section(const Node& node) {
    index(node);
    const auto whole = said_.find({node.path, node.port, node.input, node.inside});
    if (whole == said_.end()) return;
    Said said = whole->second;
    auto& sections = said.placement.cut.sections;
    if (said.placement.is_shard() && !sections.empty()) sections = {sections.at(node.section)};
    said_[node] = said;
  }

  // What each class of linked nodes lies as: the first that says something, what is given before
  // what is expected. One finding for each node that says otherwise.
  void settle() {
    for (const bool outputs : {true, false}) {
      for (const Node& node : nodes_) {
        const auto said = said_.find(node);
        if (said == said_.end() || node.input == outputs) continue;
        const auto [at, fresh] = settled_.try_emplace(root(index(node)), node);
        if (!fresh && said_.at(at->second).placement != said->second.placement)
          disagree(at->second, node, said_.at(at->second).placement, said->second.placement);
      }
    }
  }

  std::optional<Placement> lies(const Node& node) const {
    if (const auto own = said_.find(node); own != said_.end()) return own->second.placement;
    const auto at = settled_.find(root(index_.at(node)));
    return at == settled_.end() ? std::nullopt : std::optional(said_.at(at->second).placement);
  }

  PlanRule rule_of(const Node& a, const Node& b) const {
    for (const Node& node : {a, b}) {
      const auto said = said_.find(node);
      if (said != said_.end() && said->second.module && !said->second.module->rule.origin.empty())
        return said->second.module->rule;
    }
    for (const Node& node : {a, b}) {
      const auto said = said_.find(node);
      if (said != said_.end() && said->second.module) return said->second.module->rule;
    }
    return {};
  }

  void disagree(const Node& from, const Node& to, const Placement& given,
                const Placement& expected) {
    const PlanRule rule = rule_of(to, from);
    std::string message = fmt::format(
        "the {} lies {}, but the {} {} it {}: give one of them another style", label(from),
        shown(given), label(to), to.input ? "expects" : "gives", shown(expected));
    const auto said = said_.find(to);
    if (plan_.sequence_parallel && said != said_.end() && said->second.module == nullptr)
      message += fmt::format(
          " (with sequence parallel {} needs a rule: sequence_parallel, if it works token by "
          "token)",
          to.path);
    plan_.findings.push_back(wrong_rule("edges", rule, to.path, ": " + message));
  }

  void check_together(const Node& a, const Node& b) {
    const auto first = lies(a);
    const auto second = lies(b);
    if (first && second && first->is_shard() != second->is_shard()) disagree(a, b, *first, *second);
  }

  // A value that goes to every head comes back as addends where the heads are cut.
  void check_to_heads(const Node& from, const Node& to) {
    const auto heads = lies(to);
    const bool cut = heads && heads->is_shard();
    bool addends = false;
    const auto ruled = ruled_.find(from.path);
    if (ruled != ruled_.end()) {
      for (const ResolvedPort& port : ruled->second->outputs)
        addends |= port.name == from.port && port.edge.grad_outside.is_partial();
    }
    if (cut == addends) return;
    plan_.findings.push_back(wrong_rule(
        "edges", rule_of(from, to), from.path,
        fmt::format(
            ": the {} goes to every head, and the heads are {}, but its gradient is {}: give "
            "{} {}",
            label(from), cut ? "cut" : "whole", addends ? "summed over ranks" : "not summed",
            from.path, cut ? "the style mla_kv_a_proj" : "another style")));
  }

  // What a leaf computes follows from its parameters: cut ones make parts of its values, and where
  // its outputs are summed over ranks nothing in it may be whole.
  void check_parts(const Module& module) {
    if (!module.children().empty()) return;
    const auto at = ruled_.find(module.path());
    const ResolvedModule* ruled = at == ruled_.end() ? nullptr : at->second;
    bool summed = false;
    if (ruled != nullptr) {
      for (const ResolvedPort& port : ruled->outputs)
        summed |= port.edge.inside.is_partial() && plan_.mesh.size(port.axis) > 1;
    }
    const bool states_parts = ruled != nullptr && (ruled->passes || !ruled->outputs.empty());
    for (const auto& [name, parameter] : module.parameters()) {
      const ResolvedParameter& resolved = *parameters_.at(parameter->name());
      const bool cut = plan_.mesh.size(resolved.axis) > 1 && resolved.edge.inside.is_shard();
      if (cut && !states_parts)
        wrong(resolved.rule, module,
              fmt::format(
                  "cuts {}, but no rule says what that makes of what {} takes and gives: give "
                  "the module a style too",
                  parameter->name(), module.path()));
      if (summed && resolved.edge.inside.is_replicate())
        wrong(
            ruled->rule, module,
            fmt::format("sums the outputs of {} over ranks, each of which has all of {}: it would "
                        "count {} times",
                        module.path(), parameter->name(), plan_.mesh.size(resolved.axis)));
    }
    if (ruled == nullptr || !ruled->passes || module.signature().inputs.empty()) return;
    const Node input{module.path(), module.signature().inputs.front().name, true};
    const auto lie = lies(input);
    if (!lie || lie->is_shard()) return;
    for (const auto& [name, parameter] : module.parameters()) {
      const ResolvedParameter& resolved = *parameters_.at(parameter->name());
      const Edge& edge = resolved.edge;
      if (plan_.mesh.size(resolved.axis) > 1 && edge.grad_inside.is_partial() &&
          edge.grad_outside.is_replicate())
        wrong(ruled->rule, module,
              fmt::format(
                  "sums the gradient of {} over the ranks, each of which has all of it: the {} "
                  "lies whole",
                  parameter->name(), label(input)));
    }
  }

  void wrong(const PlanRule& rule, const Module& module, std::string message) {
    plan_.findings.push_back(wrong_rule("edges", rule, module.path(), std::move(message)));
  }

  void store() {
    for (const Node& node : nodes_) {
      if (node.section >= 0 || node.inside) continue;
      const Placement placement = lies(node).value_or(replicate());
      auto& ports = node.input ? plan_.inputs : plan_.outputs;
      if (!placement.is_replicate()) ports[{node.path, node.port}] = placement;
    }
  }

  Module& model_;
  ResolvedPlan& plan_;
  std::map<std::string, const ResolvedModule*> ruled_;
  std::map<std::string, const ResolvedParameter*> parameters_;
  std::map<Node, size_t> index_;
  std::vector<Node> nodes_;
  std::vector<size_t> parents_;  // of a union-find over nodes
  std::map<Node, Said> said_;
  std::map<size_t, Node> settled_;  // by class
  std::vector<std::pair<Node, Node>> unions_, together_, to_heads_;
};

}  // namespace

void trace_flow(Module& model, ResolvedPlan& plan) { Flow(model, plan).trace(); }

}  // namespace shardproof
