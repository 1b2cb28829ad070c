// RedistributePlanner: which rank sends which box to which.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "tensor/redistribute_planner.h"

namespace shardproof {

ExchangeStep RedistributePlanner::plan_exchange(const Regions& held, const Regions& wanted,
                                                int64_t term, int64_t& scratch) {
  ExchangeStep step;
  std::vector<int64_t> moved(static_cast<size_t>(ranks_));
  for (const Cell& cell : wanted_cells(held, wanted)) {
    const int64_t elements = numel(cell.region);
    for (const int64_t to : receivers(cell)) {
      const int64_t from = nearest_holder(cell, to, term);
      if (from < 0) continue;
      if (from == to) {
        if (to == request_.rank) step.copies.push_back(cell.region);
        continue;
      }
      step.moves = true;
      moved[static_cast<size_t>(from)] += elements;
      moved[static_cast<size_t>(to)] += elements;
      for (size_t axis = 0; axis < moved_axes_.size(); ++axis)
        if (coordinates_[static_cast<size_t>(from)][axis] !=
            coordinates_[static_cast<size_t>(to)][axis])
          moved_axes_[axis] = true;
      if (from == request_.rank) {
        step.sends.push_back({to, cell.region});
        plan_.elements_sent += elements;
      } else if (to == request_.rank) {
        step.receives.push_back({from, cell.region});
        plan_.elements_received += elements;
      }
    }
  }
  const auto by_peer = [](const Transfer& a, const Transfer& b) { return a.rank < b.rank; };
  std::stable_sort(step.sends.begin(), step.sends.end(), by_peer);
  std::stable_sort(step.receives.begin(), step.receives.end(), by_peer);
  scratch = std::max(scratch, *std::max_element(moved.begin(), moved.end()));
  return step;
}

// The wanters that get the cell: all, or those on one coordinate of the target's Partial axes, the
// one where most have it already.
std::vector<int64_t> RedistributePlanner::receivers(const Cell& cell) const {
  std::map<int64_t, std::map<int64_t, int64_t>>
      having;  // lane -> coordinate -> wanters that hold it
  if (!spread_axes_.empty())
    for (size_t rank = 0; rank < cell.wanters.size(); ++rank)
      if (cell.wanters[rank]) having[lane_[rank]][spread_[rank]] += cell.holders[rank] ? 1 : 0;
  std::map<int64_t, int64_t> chosen;
  for (const auto& [lane, counts] : having)
    chosen[lane] = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                     return a.second < b.second;
                   })->first;
  std::vector<int64_t> result;
  for (size_t rank = 0; rank < cell.wanters.size(); ++rank)
    if (cell.wanters[rank] && (spread_axes_.empty() || chosen.at(lane_[rank]) == spread_[rank]))
      result.push_back(static_cast<int64_t>(rank));
  return result;
}

// `rank` itself where it holds the cell; -1 where no rank of this term does.
int64_t RedistributePlanner::nearest_holder(const Cell& cell, int64_t rank, int64_t term) const {
  const auto& mine = coordinates_[static_cast<size_t>(rank)];
  int64_t best = -1;
  int64_t best_shared = -1;
  for (int64_t step = 0; step < ranks_; ++step) {
    const auto from = static_cast<size_t>((rank + step) % ranks_);
    if (!cell.holders[from] || lane_[from] != lane_[static_cast<size_t>(rank)]) continue;
    if (!term_axes_.empty() && term_[from] != term) continue;
    int64_t shared = 0;
    for (size_t axis = 0; axis < mine.size(); ++axis)
      shared += coordinates_[from][axis] == mine[axis] ? 1 : 0;
    if (shared > best_shared) best_shared = shared, best = static_cast<int64_t>(from);
  }
  SP_ENSURE(best >= 0 || !term_axes_.empty(),
            "rank {} wants a part of the tensor that no rank holds", rank);
  return best;
}

}  // namespace shardproof
