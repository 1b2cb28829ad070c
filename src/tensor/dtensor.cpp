#include "tensor/dtensor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "tensor/redistribute.h"

namespace shardproof {

DTensor from_whole(const at::Tensor& whole, MeshPtr mesh, Placements placements) {
  SP_EXPECT(mesh != nullptr, "a DTensor needs a mesh; none was given");
  return redistribute(DTensor{whole, whole.sizes().vec(), std::move(mesh), {}},
                      std::move(placements), {});
}

DTensor redistribute(const DTensor& tensor, Placements placements, const Site& site) {
  const RedistributePlan plan =
      plan_redistribute({.shape = tensor.shape,
                         .source = tensor.placements,
                         .target = placements,
                         .mesh = tensor.mesh->shape(),
                         .rank = tensor.mesh->rank(),
                         .element_bytes = static_cast<int64_t>(tensor.local.element_size())});
  return {run_redistribute(plan, tensor.local, *tensor.mesh, site), tensor.shape, tensor.mesh,
          std::move(placements)};
}

at::Tensor full(const DTensor& tensor, const Site& site) {
  return redistribute(tensor, {}, site).local;
}

std::string to_string(const Placements& placements) {
  std::vector<std::string> parts;
  for (const auto& [axis, placement] : placements)
    parts.push_back(fmt::format("{}:{}", axis, placement.to_string()));
  return parts.empty() ? "R" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string to_string(const DTensor& tensor) {
  return fmt::format("[{}] {} on {} as {}; rank {} holds [{}]", fmt::join(tensor.shape, ", "),
                     c10::toString(tensor.local.scalar_type()), tensor.mesh->shape().to_string(),
                     to_string(tensor.placements), tensor.mesh->rank(),
                     fmt::join(tensor.local.sizes(), ", "));
}

}  // namespace shardproof
