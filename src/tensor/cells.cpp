#include "tensor/cells.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardproof {
namespace {

using Ranks = std::vector<bool>;

bool any(const Ranks& ranks) { return std::find(ranks.begin(), ranks.end(), true) != ranks.end(); }

Ranks both(Ranks a, const Ranks& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] && b[i];
  return a;
}

void add_cells(const std::vector<std::vector<DimClass>>& classes, const Cell& outer,
               std::vector<Cell>& cells) {
  const size_t dim = outer.region.size();
  if (dim == classes.size()) {
    cells.push_back(outer);
    return;
  }
  for (const DimClass& part : classes[dim]) {
    Cell cell{outer.region, both(outer.holders, part.holders), both(outer.wanters, part.wanters)};
    if (!any(cell.wanters)) continue;
    cell.region.push_back(part.positions);
    add_cells(classes, cell, cells);
  }
}

}  // namespace

std::vector<DimClass> dim_classes(const std::vector<Region>& held,
                                  const std::vector<Region>& wanted, size_t dim) {
  const size_t ranks = held.size();
  std::vector<int64_t> points;
  for (const auto* regions : {&held, &wanted})
    for (const Region& region : *regions)
      for (const Interval& interval : region[dim]) {
        points.push_back(interval.begin);
        points.push_back(interval.end);
      }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.empty()) return {};

  // One bit a rank for holding, then one for wanting, for each segment between two points.
  std::vector<Ranks> marks(points.size() - 1, Ranks(2 * ranks));
  const auto mark = [&](const Region& region, size_t bit) {
    for (const Interval& interval : region[dim]) {
      auto segment =
          std::lower_bound(points.begin(), points.end(), interval.begin) - points.begin();
      for (; points[static_cast<size_t>(segment)] < interval.end; ++segment)
        marks[static_cast<size_t>(segment)][bit] = true;
    }
  };
  for (size_t rank = 0; rank < ranks; ++rank) {
    mark(held[rank], rank);
    mark(wanted[rank], ranks + rank);
  }

  std::vector<DimClass> classes;
  std::map<Ranks, size_t> index;
  for (size_t segment = 0; segment < marks.size(); ++segment) {
    const Ranks& marked = marks[segment];
    if (!any(marked)) continue;
    const auto [found, is_new] = index.try_emplace(marked, classes.size());
    const auto middle = marked.begin() + static_cast<std::ptrdiff_t>(ranks);
    if (is_new) classes.push_back({{}, Ranks(marked.begin(), middle), Ranks(middle, marked.end())});
    classes[found->second].positions.push_back({points[segment], points[segment + 1]});
  }
  for (DimClass& part : classes) part.positions = normalized(std::move(part.positions));
  return classes;
}

std::vector<Cell> wanted_cells(const std::vector<Region>& held, const std::vector<Region>& wanted) {
  std::vector<Cell> cells;
  if (held.empty()) return cells;
  std::vector<std::vector<DimClass>> classes;
  for (size_t dim = 0; dim < held.front().size(); ++dim)
    classes.push_back(dim_classes(held, wanted, dim));
  add_cells(classes, {{}, Ranks(held.size(), true), Ranks(held.size(), true)}, cells);
  return cells;
}

}  // namespace shardproof
