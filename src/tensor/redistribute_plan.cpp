#include "tensor/redistribute_plan.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/redistribute_planner.h"

namespace shardproof {
namespace {

using Kind = Placement::Kind;

void expect_placements(const RedistributeRequest& request, const Placements& placements) {
  for (size_t i = 0; i < placements.size(); ++i) {
    const auto& [axis, placement] = placements[i];
    for (size_t j = 0; j < i; ++j)
      SP_EXPECT(placements[j].axis != axis, "axis {} has two placements; give it one", axis);
    SP_EXPECT(!placement.is_shard() || (placement.dim >= 0 &&
                                        placement.dim < static_cast<int64_t>(request.shape.size())),
              "axis {} shards dim {} of a tensor with {} dims", axis, placement.dim,
              request.shape.size());
  }
}

// The ranks along an axis that hold addends of one sum; 1 where a part is whole.
int64_t addend_block(const Placement& placement, int64_t axis_size) {
  if (placement.is_partial()) return axis_size;
  return placement.kind == Kind::kAddends ? copies_block_size(placement.cut, axis_size) : 1;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

RedistributePlan plan_redistribute(const RedistributeRequest& request) {
  return RedistributePlanner(request).plan();
}

RedistributePlanner::RedistributePlanner(const RedistributeRequest& request)
    : request_(request),
      ranks_(request.mesh.world_size()),
      moved_axes_(request.mesh.axes().size()) {
  expect_placements(request, request.source);
  expect_placements(request, request.target);
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    coordinates_.push_back(request.mesh.coordinates(rank));
    source_.push_back(region_of(request.shape, request.source, request.mesh, rank));
    target_.push_back(region_of(request.shape, request.target, request.mesh, rank));
  }
  std::vector<size_t> staying;
  for (size_t axis = 0; axis < request.mesh.axes().size(); ++axis) {
    const int64_t size = request.mesh.axes()[axis].size;
    if (size == 1) continue;
    if (stays(axis)) {
      staying.push_back(axis);
      continue;
    }
    const Placement& from = on_axis(request.source, axis);
    const int64_t from_block = addend_block(from, size);
    if (from_block > 1 && (from.is_partial() || blocks_agree(axis, from_block)))
      adders_.push_back({axis, from_block});
    else if (from_block > 1)
      term_axes_.push_back(axis);
    if (addend_block(on_axis(request.target, axis), size) > 1) spread_axes_.push_back(axis);
  }
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    lane_.push_back(project(rank, staying));
    term_.push_back(project(rank, term_axes_));
    spread_.push_back(project(rank, spread_axes_));
  }
}

const Placement& RedistributePlanner::on_axis(const Placements& placements, size_t axis) const {
  static const Placement kReplicate;
  for (const AxisPlacement& placed : placements)
    if (placed.axis == request_.mesh.axes()[axis].name) return placed.placement;
  return kReplicate;
}

// Addends on both sides, each coordinate of the axis going on with its own.
bool RedistributePlanner::stays(size_t axis) const {
  const Placement& from = on_axis(request_.source, axis);
  const Placement& to = on_axis(request_.target, axis);
  if (from.is_partial() && to.is_partial()) return true;
  if (from.kind != Kind::kAddends || !(from == to)) return false;
  const std::string& name = request_.mesh.axes()[axis].name;
  for (size_t i = 0; i < request_.source.size() && i < request_.target.size(); ++i) {
    if (!(request_.source[i] == request_.target[i])) return false;
    if (request_.source[i].axis == name) return true;
  }
  return false;
}

bool RedistributePlanner::blocks_agree(size_t axis, int64_t block) const {
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    auto first = coordinates_[static_cast<size_t>(rank)];
    first[axis] -= first[axis] % block;
    if (source_[static_cast<size_t>(rank)] !=
        source_[static_cast<size_t>(request_.mesh.rank(first))])
      return false;
  }
  return true;
}

int64_t RedistributePlanner::project(int64_t rank, const std::vector<size_t>& axes) const {
  int64_t result = 0;
  for (const size_t axis : axes)
    result =
        result * request_.mesh.axes()[axis].size + coordinates_[static_cast<size_t>(rank)][axis];
  return result;
}

RedistributePlan RedistributePlanner::plan() {
  const auto me = static_cast<size_t>(request_.rank);
  SP_EXPECT(request_.rank >= 0 && request_.rank < ranks_, "rank {} is not in a mesh of {}",
            request_.rank, ranks_);
  plan_.source = source_[me];
  plan_.target = target_[me];
  if (request_.source == request_.target) {
    plan_.identity = true;
    return std::move(plan_);
  }
  for (const auto& [axis, block] : adders_)
    plan_.reduce_groups.push_back({request_.mesh.axes()[axis].name, block});
  plan_.adds = !term_axes_.empty();
  plan_.zero_filled = plan_.adds || !spread_axes_.empty();

  // Half of the scratch is for what communicators hold meanwhile.
  SlabPlan whole = plan_slab(whole_region(request_.shape));
  const int64_t budget = std::max<int64_t>(1, request_.scratch_bytes / 2 / request_.element_bytes);
  const int64_t count = ceil_div(whole.scratch_elements, budget);
  if (count <= 1) {
    plan_.slabs.push_back(std::move(whole.slab));
  } else {
    plan_.elements_sent = plan_.elements_received = 0;
    for (const Region& slab : slab_regions(count)) plan_.slabs.push_back(plan_slab(slab).slab);
  }
  for (size_t axis = 0; axis < moved_axes_.size(); ++axis)
    if (moved_axes_[axis]) plan_.axes.push_back(request_.mesh.axes()[axis].name);
  return std::move(plan_);
}

// Along one dim, the k-th part of each class: so each rank has about one part in `count` of what it
// holds and of what it wants in each slab, and all ranks work in all slabs.
std::vector<Region> RedistributePlanner::slab_regions(int64_t count) const {
  size_t best_dim = 0;
  int64_t best = -1;
  std::vector<DimClass> classes;
  for (size_t dim = 0; dim < request_.shape.size(); ++dim) {
    auto found = dim_classes(source_, target_, dim);
    int64_t smallest = request_.shape[dim];
    for (const DimClass& part : found) smallest = std::min(smallest, total_size(part.positions));
    if (smallest > best) best = smallest, best_dim = dim, classes = std::move(found);
  }
  std::vector<Region> slabs;
  for (int64_t k = 0; k < count; ++k) {
    Intervals positions;
    for (const DimClass& part : classes) {
      const int64_t size = total_size(part.positions);
      const Intervals piece = compose(part.positions, {{size * k / count, size * (k + 1) / count}});
      positions.insert(positions.end(), piece.begin(), piece.end());
    }
    std::sort(positions.begin(), positions.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    Region slab = whole_region(request_.shape);
    slab[best_dim] = normalized(std::move(positions));
    if (numel(slab) > 0) slabs.push_back(std::move(slab));
  }
  return slabs;
}

RedistributePlanner::SlabPlan RedistributePlanner::plan_slab(const Region& slab) {
  SlabPlan result;
  Regions held;
  Regions wanted;
  for (size_t rank = 0; rank < source_.size(); ++rank) {
    held.push_back(intersect(source_[rank], slab));
    wanted.push_back(intersect(target_[rank], slab));
  }
  std::vector<Adders> pending = adders_;
  if (!pending.empty()) narrow(held, wanted, pending);
  const auto me = static_cast<size_t>(request_.rank);
  result.slab.input = held[me];
  if (!pending.empty())
    for (const Region& region : held)
      result.scratch_elements = std::max(result.scratch_elements, 3 * numel(region));

  while (!pending.empty()) {
    size_t chosen = pending.size();
    Regions kept;
    for (size_t i = 0; i < pending.size() && chosen == pending.size(); ++i) {
      auto rest = pending;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      kept = needed_parts(held, wanted, rest);
      if (partition(held, kept, pending[i])) chosen = i;
    }
    bool all = false;
    if (chosen == pending.size()) {
      chosen = 0;
      // With others to come, even parts first: they add a smaller part then. A scalar has no parts.
      all =
          request_.shape.empty() || (pending.size() == 1 && needed_parts(held, wanted, {}) == held);
      kept = all ? held : even_parts(held, pending[0]);
    }
    ReduceStep step = reduce_step(held, kept, pending[chosen], all);
    if (numel(step.input) > 0) {
      count(step);
      result.slab.reductions.push_back(std::move(step));
    }
    held = std::move(kept);
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(chosen));
    if (!pending.empty()) narrow(held, wanted, pending);
  }

  int64_t terms = 1;
  for (const size_t axis : term_axes_) terms *= request_.mesh.axes()[axis].size;
  int64_t exchanged = 0;
  for (int64_t term = 0; term < terms; ++term)
    result.slab.exchanges.push_back(plan_exchange(held, wanted, term, exchanged));
  result.scratch_elements += exchanged;
  return result;
}

}  // namespace shardproof
