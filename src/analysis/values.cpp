#include "analysis/values.h"

#include <algorithm>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

bool is_trained(Module& module) {
  const auto parameters = module.all_parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const ParamPtr& parameter) { return parameter->requires_grad; });
}

// Of a leaf whose parameters all have one dim, their width; else -1.
int64_t width_of_leaf(const Module& module) {
  int64_t width = -1;
  for (const auto& [name, parameter] : module.parameters()) {
    if (parameter->shape().size() != 1 || (width >= 0 && width != parameter->shape()[0])) return -1;
    width = parameter->shape()[0];
  }
  return width;
}

}  // namespace

Values::Values(Module& model) {
  const std::vector<Module*> modules = model.modules();
  for (const Module* module : modules) take_in(*module);
  for (const Module* module : modules)
    for (const Link& link : module->links()) connect(*module, link);

  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].width >= 0) spread_width(i);
  for (Module* module : modules) {
    const bool leaf = module->children().empty();
    const int64_t width = leaf ? width_of_leaf(*module) : -1;
    const auto visit = [&](const Port& port, bool input) {
      const size_t node = index({module->path(), port.name, input});
      if (width >= 0 && nodes_[node].width < 0) {
        nodes_[node].width = width;
        spread_width(node);
      }
      const bool unstated = !leaf && module->links().empty();
      const bool begins = input ? !nodes_[node].linked && module != &model
                                : (leaf || unstated) && is_trained(*module);
      if (begins && !port.integer && !nodes_[node].has_grad) {
        nodes_[node].has_grad = true;
        spread_grad(node);
      }
    };
    for (const Port& port : module->signature().inputs) visit(port, true);
    for (const Port& port : module->signature().outputs) visit(port, false);
  }
}

size_t Values::index(const Node& node) {
  const auto [at, fresh] = index_.try_emplace(node, nodes_.size());
  if (fresh) nodes_.emplace_back();
  return at->second;
}

const Values::Known* Values::find(const std::string& path, const std::string& port,
                                  bool input) const {
  const auto at = index_.find({path, port, input});
  return at == index_.end() ? nullptr : &nodes_[at->second];
}

void Values::take_in(const Module& module) {
  const Signature& signature = module.signature();
  const auto port = [&](const Port& port, bool input) {
    const size_t node = index({module.path(), port.name, input});
    nodes_[node].width = port.width;
    nodes_[node].integer = port.integer;
    if (const ParamPtr followed = module.parameter(port.parameter)) {
      nodes_[node].width = followed->shape().at(port.parameter_dim);
      for (const Section& section : followed->cut(port.parameter_dim).sections)
        nodes_[node].sections.push_back(section.width);
    }
    return node;
  };
  std::vector<size_t> inputs;
  for (const Port& input : signature.inputs) inputs.push_back(port(input, true));
  for (const Port& output : signature.outputs) {
    const size_t node = port(output, false);
    if (!module.children().empty()) continue;
    for (const size_t input : inputs) nodes_[input].to.push_back(node);
    if (inputs.size() == 1 && signature.outputs.size() == 1 && module.parameters().empty()) {
      nodes_[node].alike.push_back(inputs[0]);
      nodes_[inputs[0]].alike.push_back(node);
    }
  }
}

void Values::connect(const Module& module, const Link& link) {
  if (link.together || link.to_heads) return;  // of two values, not one
  const auto node = [&](const LinkEnd& end, bool from) {
    // A value enters through the module's own input and leaves through its output; of children it
    // is the other way round.
    return end.child.empty()
               ? Node{module.path(), end.port, from, end.section}
               : Node{join_name(module.path(), end.child), end.port, !from, end.section};
  };
  const Node from_node = node(link.from, true);
  const Node to_node = node(link.to, false);
  Node whole = from_node;
  whole.section = -1;
  const size_t from = index(whole);
  Node whole_to = to_node;
  whole_to.section = -1;
  const size_t to = index(whole_to);
  nodes_[from].to.push_back(to);
  nodes_[to].linked = true;
  nodes_[to].sources.push_back(fmt::format("{}|{}|{}|{}", module.path(), link.from.child,
                                           link.from.port, link.from.section));
  if (from_node.section >= 0 || to_node.section >= 0) return;  // parts have widths of their own
  nodes_[from].alike.push_back(to);
  nodes_[to].alike.push_back(from);
}

void Values::spread_width(size_t from) {
  std::vector<size_t> next = {from};
  while (!next.empty()) {
    const size_t node = next.back();
    next.pop_back();
    for (const size_t other : nodes_[node].alike) {
      if (nodes_[other].width >= 0) continue;
      nodes_[other].width = nodes_[node].width;
      next.push_back(other);
    }
  }
}

void Values::spread_grad(size_t from) {
  std::vector<size_t> next = {from};
  while (!next.empty()) {
    const size_t node = next.back();
    next.pop_back();
    for (const size_t other : nodes_[node].to) {
      if (nodes_[other].has_grad || nodes_[other].integer) continue;
      nodes_[other].has_grad = true;
      next.push_back(other);
    }
  }
}

std::optional<int64_t> Values::width(const std::string& path, const std::string& port, bool input,
                                     int64_t section) const {
  const Known* known = find(path, port, input);
  if (known == nullptr || known->width < 0) return std::nullopt;
  return section < 0 ? known->width : known->sections.at(section);
}

bool Values::has_grad(const std::string& path, const std::string& port, bool input) const {
  const Known* known = find(path, port, input);
  return known != nullptr && known->has_grad;
}

bool Values::is_integer(const std::string& path, const std::string& port, bool input) const {
  const Known* known = find(path, port, input);
  return known != nullptr && known->integer;
}

std::string Values::source(const std::string& path, const std::string& port) const {
  const Known* known = find(path, port, true);
  return known == nullptr || known->sources.size() != 1 ? "" : known->sources.front();
}

}  // namespace shardproof
