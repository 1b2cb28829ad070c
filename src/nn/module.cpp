#include "nn/module.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

std::string port_names(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool NamedTensors::has(const std::string& name) const { return get(name).defined(); }

const at::Tensor& NamedTensors::at(const std::string& name) const {
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [&](const auto& item) { return item.first == name; });
  SP_EXPECT(found != items_.end(), "there is no tensor '{}' among {}", name, items_.size());
  return found->second;
}

at::Tensor& NamedTensors::at(const std::string& name) {
  return const_cast<at::Tensor&>(std::as_const(*this).at(name));
}

at::Tensor NamedTensors::get(const std::string& name) const {
  for (const auto& [key, tensor] : items_) {
    if (key == name) return tensor;
  }
  return {};
}

void NamedTensors::set(const std::string& name, at::Tensor tensor) {
  for (auto& [key, value] : items_) {
    if (key == name) {
      value = std::move(tensor);
      return;
    }
  }
  items_.emplace_back(name, std::move(tensor));
}

std::string Module::label() const {
  return fmt::format("{} ({})", path_.empty() ? "the root module" : path_, type_);
}

NamedTensors Module::bind(const std::vector<at::Tensor>& positional, NamedTensors named) const {
  const auto& ports = signature_.inputs;
  SP_VALIDATE(positional.size() <= ports.size(),
              "{}: {} positional inputs were given, it takes {} ({})", label(), positional.size(),
              ports.size(), port_names(ports));
  for (const auto& [name, tensor] : named) {
    const bool known = std::any_of(ports.begin(), ports.end(),
                                   [&](const Port& port) { return port.name == name; });
    SP_VALIDATE(known, "{}: there is no input '{}'; its inputs are {}", label(), name,
                port_names(ports));
    const auto times = std::count_if(named.begin(), named.end(), [&](const auto& item) {
      return item.first == name && item.second.defined();
    });
    SP_VALIDATE(times <= 1, "{}: the input '{}' was given {} times by name", label(), name, times);
  }
  NamedTensors bound;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& name = ports[i].name;
    at::Tensor by_name;
    for (const auto& [key, tensor] : named) {
      if (key == name && tensor.defined()) by_name = tensor;
    }
    const at::Tensor by_position = i < positional.size() ? positional[i] : at::Tensor();
    SP_VALIDATE(!by_name.defined() || !by_position.defined(),
                "{}: the input '{}' was given twice, by position {} and by name", label(), name, i);
    if (by_name.defined()) {
      bound.set(name, by_name);
    } else if (by_position.defined()) {
      bound.set(name, by_position);
    }
  }
  return bound;
}

NamedTensors Module::call(const std::vector<at::Tensor>& positional, NamedTensors named) {
  NamedTensors inputs = bind(positional, std::move(named));
  for (auto hook = hooks_.rbegin(); hook != hooks_.rend(); ++hook) (*hook)->before(*this, inputs);
  // After the hooks: one that needs the input says why.
  for (const Port& port : signature_.inputs) {
    SP_VALIDATE(!port.required || inputs.has(port.name),
                "{}: the required input '{}' was not given", label(), port.name);
  }
  NamedTensors outputs = forward(inputs);
  for (const Port& port : signature_.outputs) {
    SP_ENSURE(!port.required || outputs.has(port.name), "{}: forward gave no output '{}'", label(),
              port.name);
  }
  for (const auto& hook : hooks_) hook->after(*this, outputs);
  return outputs;
}

at::Tensor Module::only(const NamedTensors& outputs) {
  SP_EXPECT(outputs.size() == 1, "one output was expected, there are {}", outputs.size());
  return outputs.begin()->second;
}

ParamPtr Module::parameter(const std::string& local_name) const {
  for (const auto& [name, parameter] : parameters_) {
    if (name == local_name) return parameter;
  }
  return nullptr;
}

void Module::set_paths(const std::string& path) {
  path_ = path;
  for (const auto& [name, parameter] : parameters_) {
    const std::string full = join_name(path_, name);
    const auto& names = parameter->names();
    if (std::find(names.begin(), names.end(), full) == names.end()) parameter->add_name(full);
  }
  for (const auto& [name, child] : children_) child->set_paths(join_name(path_, name));
}

void Module::finish() { set_paths(""); }

std::vector<Module*> Module::modules() {
  std::vector<Module*> found = {this};
  for (const auto& [name, child] : children_) {
    const auto below = child->modules();
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<ParamPtr> Module::all_parameters() {
  std::vector<ParamPtr> found;
  std::unordered_set<const Parameter*> seen;
  for (Module* module : modules()) {
    for (const auto& [name, parameter] : module->parameters()) {
      if (seen.insert(parameter.get()).second) found.push_back(parameter);
    }
  }
  return found;
}

}  // namespace shardproof
