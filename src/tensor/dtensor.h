// A tensor that lies on a mesh: this rank's part of it and where the parts are.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "mesh/device_mesh.h"
#include "tensor/placement.h"

namespace shardproof {

struct DTensor {
  at::Tensor local;            // of the shape that `placements` give this rank
  std::vector<int64_t> shape;  // global
  MeshPtr mesh;
  Placements placements;

  // The part of the tensor that `local` is.
  Region region() const { return region_of(shape, placements, mesh->shape(), mesh->rank()); }
};

// Cuts a tensor that each rank has whole; for Partial the whole is on coordinate 0 and zeros
// elsewhere. No data moves. The part has memory of its own, unless it is the whole.
DTensor from_whole(const at::Tensor& whole, MeshPtr mesh, Placements placements);

// Collective over the mesh: the same tensor in another layout; no autograd (see redistribute.h for
// the cost, and for the differentiable form).
DTensor redistribute(const DTensor& tensor, Placements placements, const Site& site);

// Collective over the mesh: the whole tensor, on every rank.
at::Tensor full(const DTensor& tensor, const Site& site);

// "tp:S(0), fsdp:S(1)", in nest order; "R" where nothing is said.
std::string to_string(const Placements& placements);
// "[10, 4] Double on tp=2,fsdp=2 as tp:S(0), fsdp:S(1); rank 1 holds [5, 2]"
std::string to_string(const DTensor& tensor);

}  // namespace shardproof
