// Which large parameters no rule of a plan touches.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

// Parameters that tensor parallelism leaves whole on every rank though no rule says so. Those of
// all layers count together: "model.layers.*.mlp.router.weight" is one.
struct Uncovered {
  std::vector<std::string> names;  // canonical, of one pattern and shape
  std::vector<int64_t> shape;      // of each
  int64_t elements = 0;            // of all of them
};
struct Coverage {
  int64_t elements = 0;          // of the model
  std::vector<Uncovered> holes;  // largest first
};
// A rule covers a parameter if it names it, or its module, or (`replicate`, say) a module around
// it.
Coverage coverage_of(Module& model, const ResolvedPlan& plan);

// A note "uncovered" for every hole with at least `share` of the model's elements: with a tp axis;
// with an ep axis alone for experts only.
Findings uncovered(Module& model, const ResolvedPlan& plan, double share);

}  // namespace shardproof
