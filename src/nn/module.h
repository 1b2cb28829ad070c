// A module: named children and parameters, and a call with positional and named inputs.
//
// Arguments are bound to names once, in call(): hooks and forward() see names only, so it makes no
// difference to them how the caller passed an input. A module declares its inputs and outputs in
// its Signature; a call that leaves out a required input, gives one twice or an unknown one is an
// InputError that names module and input.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/parameter.h"

namespace shardproof {

// A few tensors by name, in order.
class NamedTensors {
 public:
  NamedTensors() = default;
  NamedTensors(std::initializer_list<std::pair<std::string, at::Tensor>> items) : items_(items) {}

  // True where there is a defined one.
  bool has(const std::string& name) const;
  // Throws ContractError where there is none of this name.
  const at::Tensor& at(const std::string& name) const;
  at::Tensor& at(const std::string& name);
  // Undefined where there is none.
  at::Tensor get(const std::string& name) const;
  void set(const std::string& name, at::Tensor tensor);
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  size_t size() const { return items_.size(); }

 private:
  std::vector<std::pair<std::string, at::Tensor>> items_;
};

// An input or output of a module. `follows` states, for sharding, which dim of which parameter its
// last dim is made of: Linear's output follows {"weight", 0}, its input {"weight", 1}.
struct Port {
  std::string name;
  bool required = true;
  std::string parameter = {};  // "" = follows none
  int64_t parameter_dim = 0;
  // Of its last dim, where no parameter or link tells; -1 = not stated.
  int64_t width = -1;
  bool integer = false;  // int64 values, which have no gradient
};

struct Signature {
  std::vector<Port> inputs;
  std::vector<Port> outputs = {{"output"}};
};

// One end of a Link: a port of a child, or of the module itself (child ""). `section`: only that
// part of the port's last dim, counted in the sections of the cut that the port follows; -1 = all.
struct LinkEnd {
  std::string child;
  std::string port;
  int64_t section = -1;
};

// What a module states of its own code, so that plans can be checked without running it: the value
// at `to` lies over ranks as the one at `from`, because it is that value or is made of it token by
// token and feature by feature. Without links a plan's edges are checked by running only.
struct Link {
  LinkEnd from;
  LinkEnd to;
  // True: both are values that the module's code reads, and need only be cut both or not at all
  // (queries and keys).
  bool together = false;
  // True: `from` is whole on every rank and goes to each of the heads at `to`, so that its gradient
  // comes as addends exactly where these are cut.
  bool to_heads = false;
};

class Module;

// Sees every call of one module. `before` of hooks runs from the last added to the first, `after`
// from the first added to the last: what was added last is outermost.
class ModuleHook {
 public:
  virtual ~ModuleHook() = default;
  virtual void before(Module&, NamedTensors& /*inputs*/) {}
  virtual void after(Module&, NamedTensors& /*outputs*/) {}
};

class Module {
 public:
  Module(std::string type, Signature signature)
      : type_(std::move(type)), signature_(std::move(signature)) {}
  virtual ~Module() = default;
  // How values flow between this module's own ports and its children's. None for a leaf.
  virtual std::vector<Link> links() const { return {}; }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Positional inputs are bound to signature().inputs in order, named ones by name; an undefined
  // tensor counts as not given.
  NamedTensors call(const std::vector<at::Tensor>& positional, NamedTensors named = {});
  // The same for a module with one output.
  at::Tensor operator()(const at::Tensor& input) { return only(call({input})); }
  static at::Tensor only(const NamedTensors& outputs);

  const std::string& type() const { return type_; }
  const Signature& signature() const { return signature_; }
  // Dotted path from the root ("model.layers.0.mlp"), "" for the root. Set by finish().
  const std::string& path() const { return path_; }
  // Path and type, as messages name the module: "model.norm (RmsNorm)".
  std::string label() const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const {
    return children_;
  }
  // This module's own parameters, by local name.
  const std::vector<std::pair<std::string, ParamPtr>>& parameters() const { return parameters_; }
  ParamPtr parameter(const std::string& local_name) const;  // nullptr where there is none

  void add_hook(std::shared_ptr<ModuleHook> hook) { hooks_.push_back(std::move(hook)); }
  void clear_hooks() { hooks_.clear(); }

  // For the root, once built: sets the paths of all modules and the names of all parameters.
  void finish();
  // This module and all below, parents first, in order of declaration.
  std::vector<Module*> modules();
  // All parameters once each, in order of declaration, tied ones under their first name.
  std::vector<ParamPtr> all_parameters();

 protected:
  virtual NamedTensors forward(const NamedTensors& inputs) = 0;

  template <class M>
  std::shared_ptr<M> add_child(std::string name, std::shared_ptr<M> child) {
    children_.emplace_back(std::move(name), child);
    return child;
  }
  ParamPtr add_parameter(std::string name, ParamPtr parameter) {
    parameters_.emplace_back(std::move(name), parameter);
    return parameter;
  }

 private:
  NamedTensors bind(const std::vector<at::Tensor>& positional, NamedTensors named) const;
  void set_paths(const std::string& path);

  std::string type_;
  Signature signature_;
  std::string path_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<std::pair<std::string, ParamPtr>> parameters_;
  std::vector<std::shared_ptr<ModuleHook>> hooks_;
};

}  // namespace shardproof
