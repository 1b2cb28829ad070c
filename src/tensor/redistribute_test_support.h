// What tests of redistribute share: addends whose sum is known, and what layouts make of it.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "mesh/mesh_shape.h"
#include "tensor/placement.h"
#include "tensor/region_copy.h"

namespace shardproof::testing {

// Whole numbers in float64: sums are exact in any order.
inline at::Tensor whole_numbers(const std::vector<int64_t>& shape, const CounterRng& rng) {
  at::Tensor result = at::empty(shape, at::kDouble);
  auto* data = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i)
    data[i] = static_cast<double>(rng.integer(static_cast<uint64_t>(i), 2001)) - 1000;
  return result;
}

inline bool holds_addends(const AxisPlacement& placed, const MeshShape& mesh) {
  const auto& [axis, placement] = placed;
  return placement.is_partial() || (placement.kind == Placement::Kind::kAddends &&
                                    copies_block_size(placement.cut, mesh.size(axis)) > 1);
}

// Which addend a rank holds: its coordinate on the axes that hold addends.
inline int64_t addend_of(const Placements& placements, const MeshShape& mesh, int64_t rank) {
  std::vector<std::string> axes;
  for (const AxisPlacement& placed : placements)
    if (holds_addends(placed, mesh)) axes.push_back(placed.axis);
  return mesh.coordinate(rank, axes);
}

// The tensor that the parts of all ranks stand for: each addend once, however many ranks hold it.
// Sets `agree` to false where two holders of one addend differ.
inline at::Tensor assemble(const std::vector<at::Tensor>& locals, const std::vector<int64_t>& shape,
                           const Placements& placements, const MeshShape& mesh, bool& agree) {
  std::map<int64_t, at::Tensor> addends;
  const Region whole = whole_region(shape);
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const Region region = region_of(shape, placements, mesh, rank);
    const at::Tensor& local = locals[static_cast<size_t>(rank)];
    auto [found, is_new] = addends.try_emplace(addend_of(placements, mesh, rank));
    if (is_new) found->second = at::full(shape, std::nan(""), at::kDouble);
    const at::Tensor before = take(found->second, whole, region);
    agree = agree && at::logical_or(before.isnan(), before == local).all().item<bool>();
    put(found->second, whole, local, region);
  }
  at::Tensor sum = at::zeros(shape, at::kDouble);
  for (const auto& [key, addend] : addends) sum += addend.nan_to_num(0);
  return sum;
}

// Parts of all ranks in a layout, with addends drawn from `rng` streams; the tensor is what
// assemble() says.
inline std::vector<at::Tensor> drawn_parts(const std::vector<int64_t>& shape,
                                           const Placements& placements, const MeshShape& mesh,
                                           uint64_t seed) {
  std::vector<at::Tensor> locals;
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const CounterRng rng(seed, "addend " + std::to_string(addend_of(placements, mesh, rank)));
    locals.push_back(take(whole_numbers(shape, rng), whole_region(shape),
                          region_of(shape, placements, mesh, rank)));
  }
  return locals;
}

}  // namespace shardproof::testing
