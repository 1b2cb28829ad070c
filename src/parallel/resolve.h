// resolve(): plans + model + mesh -> what is done to each module and parameter. Pure: no ranks, no
// data. Axes of size 1 vanish here. `analysis` and the executor read the result alone.
#pragma once

#include <functional>
#include <map>

#include "nn/module.h"
#include "parallel/distributed_config.h"
#include "tensor/placement.h"

namespace shardproof {

// The four placements of a value on one axis: how it lies outside and inside the module, and its
// gradient inside and outside. For a parameter: outside = as kept, inside = as computed with.
struct Edge {
  Placement outside, inside, grad_inside, grad_outside;
  bool operator==(const Edge&) const = default;
  bool is_identity() const { return outside == inside && grad_inside == grad_outside; }
};

struct ResolvedPort {
  std::string name;  // of the input or output
  std::string axis;
  Edge edge;
};

struct ResolvedModule {
  std::string path;
  std::string style;
  std::vector<ResolvedPort> inputs, outputs;  // those with an edge that does something
};

struct ResolvedParameter {
  std::string name;  // canonical
  std::string axis;  // of `edge`: "tp"
  std::string style;
  Edge edge;
  Placements view_placements;  // as computed with, over the tensor-parallel axis
  Placements kept_placements;  // as stored: tp, then fsdp
  std::string unit;  // path of the FSDP unit that gathers and reduces it ("" = the root unit)
};

struct ResolvedUnit {
  std::string path;  // of the module that it surrounds, "" = the root
  bool free_after_forward = true;
  std::vector<std::string> parameters;  // canonical names, in order
};

struct ResolvedPlan {
  MeshShape mesh;
  std::vector<ResolvedModule> modules;
  std::vector<ResolvedParameter> parameters;
  std::vector<ResolvedUnit> units;  // the root unit first
  // How each module's outputs lie over tp as the caller sees them: (path, output) -> placement.
  // Modules that no rule touches are not listed: theirs are replicated.
  std::map<std::pair<std::string, std::string>, Placement> outputs;
  const ResolvedParameter& parameter(const std::string& name) const;
  Placement output(const std::string& path, const std::string& name) const;
};

// Throws InputError for a rule that matches nothing, an unknown style, a style on a module it does
// not fit, tied weights under rules that disagree.
ResolvedPlan resolve(Module& model, const MeshShape& mesh, const DistributedConfig& config,
                     const ModelPlans& plans);

}  // namespace shardproof
