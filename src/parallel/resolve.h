// resolve(): plans + model + mesh -> what is done to each module and parameter. Pure: no ranks, no
// data. Axes of size 1 vanish here. `analysis` and the executor read the result alone.
//
// A value that lies sharded by tokens (sequence parallel) has a placement on dim 1 without a cut:
// its width, the number of tokens of a call, is known at the call only (edge_hook.h).
#pragma once

#include <functional>
#include <map>

#include "nn/module.h"
#include "parallel/distributed_config.h"
#include "parallel/finding.h"
#include "tensor/placement.h"

namespace shardproof {

// The four placements of a value on one axis: how it lies outside and inside the module, and its
// gradient inside and outside. For a parameter: outside = as kept, inside = as computed with.
struct Edge {
  Placement outside, inside, grad_inside, grad_outside;
  bool operator==(const Edge&) const = default;
  bool is_identity() const { return outside == inside && grad_inside == grad_outside; }
  // Of a parameter: whole as kept, an addend as computed with, so that on this coordinate its view
  // is zeros.
  bool masks(int64_t coordinate) const {
    return outside.is_replicate() && inside.is_partial() && coordinate != 0;
  }
};

// True for a placement whose width is known at the call only.
inline bool is_cut_by_tokens(const Placement& placement) {
  return placement.is_shard() && placement.dim == 1 && placement.cut.sections.empty();
}

struct ResolvedPort {
  std::string name;  // of the input or output
  std::string axis;
  Edge edge;
};

struct ResolvedModule {
  std::string path;
  std::string style;  // never an alias
  PlanRule rule;
  std::vector<ResolvedPort> inputs, outputs;  // those that the style gives an edge
  bool passes = false;                        // of the style
  bool dispatches = false;                    // of the style
};

struct ResolvedParameter {
  std::string name;   // canonical
  std::string axis;   // of `edge`: "tp", or "ep" for experts
  std::string style;  // "" where no rule gives it an edge; never an alias
  PlanRule rule;
  Edge edge;
  Placements view_placements;  // as computed with, over the tensor-parallel axis
  Placements kept_placements;  // as stored: tp, then fsdp
  std::string unit;  // path of the FSDP unit that gathers and reduces it ("" = the root unit)
  // The axis that FSDP cuts it over.
  std::string data_axis() const { return axis == "ep" ? "efsdp" : "fsdp"; }
};

struct ResolvedUnit {
  std::string path;  // of the module that it surrounds, "" = the root
  // The axis that its parameters are cut over: "fsdp", for experts "efsdp".
  std::string data_axis = "fsdp";
  bool free_after_forward = true;
  std::vector<std::string> parameters;  // canonical names, in order
};

struct ResolvedPlan {
  MeshShape mesh;
  std::vector<ResolvedModule> modules;
  std::vector<ResolvedParameter> parameters;
  std::vector<ResolvedUnit> units;  // the root unit first
  // How each module's inputs and outputs lie over tp as the caller sees them: (path, port) ->
  // placement, where it is not replicated. Containers' follow from the links that modules state.
  std::map<std::pair<std::string, std::string>, Placement> inputs, outputs;
  bool sequence_parallel = false;
  Findings findings;
  const ResolvedParameter& parameter(const std::string& name) const;
  Placement input(const std::string& path, const std::string& name) const;
  Placement output(const std::string& path, const std::string& name) const;
};

// Throws InputError with all findings that are errors, one a line: a user's rule that matches
// nothing, a module that two rules match, an unknown style, a style on a module or parameter it
// does not fit, tied weights under rules that disagree, an output that lies otherwise than where it
// goes expects, with sequence parallel a module in the stream without a rule.
ResolvedPlan resolve(Module& model, const MeshShape& mesh, const DistributedConfig& config,
                     const ModelPlans& plans);

// The same without throwing: the findings are in the result, and rules at fault are left out.
ResolvedPlan resolve_with_findings(Module& model, const MeshShape& mesh,
                                   const DistributedConfig& config, const ModelPlans& plans);

}  // namespace shardproof
