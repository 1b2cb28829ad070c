// How values lie between modules, without running anything: what the edges of styles say at ports,
// carried along the links that modules state (nn/module.h). Pure.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

// Fills `plan.inputs` and `plan.outputs`, and adds a finding "edges" wherever a value lies
// otherwise than where it goes expects it. A leaf without a rule expects and gives whole values.
void trace_flow(Module& model, ResolvedPlan& plan);

}  // namespace shardproof
