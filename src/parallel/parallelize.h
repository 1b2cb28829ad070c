// parallelize(): the one function that spreads a model over a mesh.
//
// In this order: (1) resolve the plans against the model (pure; see resolve.h), (2) make the
// process groups that the resolved plan needs, (3) place every parameter: its shard `kept`, its
// `view`, (4) attach the conversions of tensor parallelism to the modules, (5) attach the FSDP /
// DDP units outside them. Collective over the mesh's world. The parameters' values are
// uninitialised afterwards: load them (checkpoint/load.h) or fill `kept`.
//
// Afterwards the model is called, and loss.backward() run, as on one rank; when backward() returns
// every parameter's `grad` holds the sum over all ranks that share it, laid out like `kept`. All
// ranks of a data-parallel group must run the same forward and backward.
#pragma once

#include "mesh/device_mesh.h"
#include "nn/module.h"
#include "parallel/distributed_config.h"
#include "parallel/resolve.h"

namespace shardproof {

struct ParallelizeOptions {
  at::ScalarType dtype = at::kFloat;
  // Sees, and may edit, what was resolved before it is applied: how faults are planted in tests.
  std::function<void(ResolvedPlan&)> edit = {};
};

// Returns the resolved plan that was applied (its hooks live in the model).
std::shared_ptr<const ResolvedPlan> parallelize(Module& model, const MeshPtr& mesh,
                                                const DistributedConfig& config,
                                                const ModelPlans& plans,
                                                const ParallelizeOptions& options = {});

}  // namespace shardproof
