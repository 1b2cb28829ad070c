// Half-open intervals of positions along one dim of a tensor, and their arithmetic. Pure functions:
// every statement about who holds which part of a tensor is made of these.
#pragma once

#include <cstdint>
#include <vector>

namespace shardproof {

struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

// Ordered: the local positions 0, 1, ... of a shard are these global positions, interval after
// interval. Neighbours that touch are merged and empty ones dropped by every function here.
using Intervals = std::vector<Interval>;

// The part of a tensor that a rank holds: the product of one list of intervals a dim.
using Region = std::vector<Intervals>;

int64_t total_size(const Intervals& intervals);
// Elements of a region; 1 for a scalar (no dims).
int64_t numel(const Region& region);
std::vector<int64_t> local_shape(const Region& region);
// All of a tensor of this shape.
Region whole_region(const std::vector<int64_t>& shape);

// Drops empty intervals and merges touching ones, order kept.
Intervals normalized(Intervals intervals);

// The global positions of the local positions `inner` of a shard that holds `outer`.
Intervals compose(const Intervals& outer, const Intervals& inner);

// The positions in both, in the order of `a`.
Intervals intersect(const Intervals& a, const Intervals& b);
Region intersect(const Region& a, const Region& b);

// Where the global positions `wanted` lie among the local positions of a shard that holds `held`:
// local intervals, in the order of `wanted`. Throws ContractError where one is not held.
Intervals locate(const Intervals& held, const Intervals& wanted);
Region locate(const Region& held, const Region& wanted);

// True where every position of `wanted` is held.
bool covers(const Intervals& held, const Intervals& wanted);

}  // namespace shardproof
