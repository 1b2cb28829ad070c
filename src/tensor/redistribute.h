// Moves a tensor from one layout on a mesh to another, as redistribute_plan.h describes.
#pragma once

#include <ATen/core/Tensor.h>

#include "mesh/device_mesh.h"
#include "tensor/redistribute_plan.h"

namespace shardproof {

// Makes the communicators that a plan needs. Collective over the mesh at the first call for a kind
// of plan (DeviceMesh::group); after that nothing.
void prepare_redistribute(const RedistributePlan& plan, DeviceMesh& mesh);

// Runs the plan of this rank: `local` has the shape of plan.source, the result that of plan.target,
// in new memory; for an identity it is `local`. Collective over the mesh: all ranks run the plans
// of one request. Holds at most the request's scratch besides both. No autograd. Throws
// ContractError for another shape.
at::Tensor run_redistribute(const RedistributePlan& plan, const at::Tensor& local, DeviceMesh& mesh,
                            const Site& site);

// The layouts of a value and of its gradient on both sides.
struct RedistributeEdge {
  Placements source;
  Placements target;
  Placements grad_of_target;
  Placements grad_of_source;
};

// The layout that the gradient of a value in `placements` has where nothing else is said: the same
// shards (copies hold the whole gradient each), whole on all ranks for Replicate and for Partial.
Placements gradient_of(const Placements& placements);
// With both gradients by that rule.
RedistributeEdge plain_edge(Placements source, Placements target);

// The differentiable form. `local` is this rank's part, in edge.source, of a tensor of `shape`; the
// result is its part in edge.target. Backward takes the gradient in edge.grad_of_target and gives
// it in edge.grad_of_source; it is collective too, also where a rank has no gradient (zeros stand
// for it), so all ranks must build the same graph. For equal layouts the result shares memory with
// `local`.
at::Tensor redistribute(const at::Tensor& local, const std::vector<int64_t>& shape,
                        const RedistributeEdge& edge, const MeshPtr& mesh, const Site& site);

}  // namespace shardproof
