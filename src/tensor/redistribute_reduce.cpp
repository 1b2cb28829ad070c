// RedistributePlanner: how addends are summed.
#include <algorithm>

#include "tensor/redistribute_planner.h"

namespace shardproof {
namespace {

// The positions of `held` in any of `parts`, in the order of `held`.
Intervals held_in_any(const Intervals& held, Intervals parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Intervals merged;
  for (const Interval& part : parts) {
    if (!merged.empty() && part.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, part.end);
    else
      merged.push_back(part);
  }
  return intersect(held, merged);
}

// The smallest product of intervals within `held` that has all of what `ranks` want of it.
Region needed_hull(const Region& held, const std::vector<Region>& wanted,
                   const std::vector<int64_t>& ranks) {
  std::vector<Intervals> needed(held.size());
  bool none = true;
  for (const int64_t rank : ranks) {
    const Region part = intersect(held, wanted[static_cast<size_t>(rank)]);
    if (numel(part) == 0) continue;
    none = false;
    for (size_t dim = 0; dim < held.size(); ++dim)
      needed[dim].insert(needed[dim].end(), part[dim].begin(), part[dim].end());
  }
  // Nothing: empty along every dim. A scalar is always wanted by all.
  if (none) return Region(held.size());
  Region hull;
  for (size_t dim = 0; dim < held.size(); ++dim)
    hull.push_back(held_in_any(held[dim], std::move(needed[dim])));
  return hull;
}

}  // namespace

// The ranks that add with `rank`, ascending: for one axis that is by coordinate.
std::vector<int64_t> RedistributePlanner::adders_of(int64_t rank,
                                                    const std::vector<Adders>& adders) const {
  std::vector<int64_t> found{rank};
  for (const auto& [axis, block] : adders) {
    std::vector<int64_t> more;
    for (const int64_t from : found) {
      auto at = coordinates_[static_cast<size_t>(from)];
      const int64_t first = at[axis] - at[axis] % block;
      for (int64_t member = 0; member < block; ++member) {
        at[axis] = first + member;
        more.push_back(request_.mesh.rank(at));
      }
    }
    found = std::move(more);
  }
  return found;
}

// Drops what no rank of a summing group wants, where every wanted element stays held by somebody.
void RedistributePlanner::narrow(Regions& held, const Regions& wanted,
                                 const std::vector<Adders>& adders) const {
  if (!term_axes_.empty()) return;
  Regions less;
  for (int64_t rank = 0; rank < ranks_; ++rank)
    less.push_back(needed_hull(held[static_cast<size_t>(rank)], wanted, adders_of(rank, adders)));
  if (less != held && all_served(less, wanted)) held = std::move(less);
}

bool RedistributePlanner::all_served(const Regions& held, const Regions& wanted) const {
  for (const Cell& cell : wanted_cells(held, wanted)) {
    std::vector<int64_t> lanes;
    for (size_t rank = 0; rank < cell.holders.size(); ++rank)
      if (cell.holders[rank]) lanes.push_back(lane_[rank]);
    for (size_t rank = 0; rank < cell.wanters.size(); ++rank)
      if (cell.wanters[rank] && std::find(lanes.begin(), lanes.end(), lane_[rank]) == lanes.end())
        return false;
  }
  return true;
}

// The groups still to add must hold the same afterwards: a part is what any of them needs.
RedistributePlanner::Regions RedistributePlanner::needed_parts(
    const Regions& held, const Regions& wanted, const std::vector<Adders>& rest) const {
  Regions parts;
  for (int64_t rank = 0; rank < ranks_; ++rank)
    parts.push_back(needed_hull(held[static_cast<size_t>(rank)], wanted, adders_of(rank, rest)));
  return parts;
}

RedistributePlanner::Regions RedistributePlanner::even_parts(const Regions& held,
                                                             const Adders& adders) const {
  Regions parts = held;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const auto shape = local_shape(parts[rank]);
    const auto dim =
        static_cast<size_t>(std::max_element(shape.begin(), shape.end()) - shape.begin());
    const int64_t member = coordinates_[rank][adders.axis] % adders.block;
    parts[rank][dim] =
        compose(held[rank][dim], cut_intervals({}, shape[dim], adders.block, member));
  }
  return parts;
}

bool RedistributePlanner::partition(const Regions& held, const Regions& parts,
                                    const Adders& adders) const {
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    const auto members = adders_of(rank, {adders});
    if (members.front() != rank) continue;
    int64_t total = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      const Region& part = parts[static_cast<size_t>(members[i])];
      total += numel(part);
      for (size_t j = 0; j < i; ++j)
        if (numel(intersect(part, parts[static_cast<size_t>(members[j])])) > 0) return false;
    }
    if (total != numel(held[static_cast<size_t>(rank)])) return false;
  }
  return true;
}

ReduceStep RedistributePlanner::reduce_step(const Regions& held, const Regions& kept,
                                            const Adders& adders, bool all) const {
  const auto me = static_cast<size_t>(request_.rank);
  ReduceStep step;
  step.kind = all ? ReduceStep::Kind::kAllReduce : ReduceStep::Kind::kReduceScatter;
  step.axis = request_.mesh.axes()[adders.axis].name;
  step.block = adders.block;
  step.member = coordinates_[me][adders.axis] % adders.block;
  step.input = held[me];
  step.output = kept[me];
  if (!all)
    for (const int64_t member : adders_of(request_.rank, {adders}))
      step.parts.push_back(kept[static_cast<size_t>(member)]);
  return step;
}

void RedistributePlanner::count(const ReduceStep& step) {
  const int64_t whole = numel(step.input);
  if (step.kind == ReduceStep::Kind::kReduceScatter) {
    plan_.elements_sent += whole - numel(step.output);
    plan_.elements_received += (step.block - 1) * numel(step.output);
    return;
  }
  const int64_t part = whole * (step.member + 1) / step.block - whole * step.member / step.block;
  plan_.elements_sent += whole - part + (step.block - 1) * part;
  plan_.elements_received += whole - part + (step.block - 1) * part;
}

}  // namespace shardproof
