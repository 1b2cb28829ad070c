#include "tensor/interval.h"

#include <algorithm>

#include "base/check.h"

namespace shardproof {

int64_t total_size(const Intervals& intervals) {
  int64_t total = 0;
  for (const Interval& interval : intervals) total += interval.size();
  return total;
}

int64_t numel(const Region& region) {
  int64_t product = 1;
  for (const Intervals& dim : region) product *= total_size(dim);
  return product;
}

std::vector<int64_t> local_shape(const Region& region) {
  std::vector<int64_t> shape;
  for (const Intervals& dim : region) shape.push_back(total_size(dim));
  return shape;
}

Region whole_region(const std::vector<int64_t>& shape) {
  Region region;
  for (const int64_t size : shape) region.push_back(normalized({{0, size}}));
  return region;
}

Intervals normalized(Intervals intervals) {
  Intervals result;
  for (const Interval& interval : intervals) {
    if (interval.size() <= 0) continue;
    if (!result.empty() && result.back().end == interval.begin) {
      result.back().end = interval.end;
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

Intervals compose(const Intervals& outer, const Intervals& inner) {
  Intervals result;
  for (const Interval& part : inner) {
    int64_t offset = 0;  // local position where `held` begins
    for (const Interval& held : outer) {
      const int64_t begin = std::max(part.begin, offset);
      const int64_t end = std::min(part.end, offset + held.size());
      if (begin < end) {
        result.push_back({held.begin + begin - offset, held.begin + end - offset});
      }
      offset += held.size();
    }
    SP_EXPECT(part.end <= offset, "local interval [{}, {}) of a shard of {} positions", part.begin,
              part.end, offset);
  }
  return normalized(std::move(result));
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals result;
  for (const Interval& left : a) {
    Intervals hits;
    for (const Interval& right : b) {
      const Interval both{std::max(left.begin, right.begin), std::min(left.end, right.end)};
      if (both.size() > 0) hits.push_back(both);
    }
    std::sort(hits.begin(), hits.end(),
              [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
    result.insert(result.end(), hits.begin(), hits.end());
  }
  return normalized(std::move(result));
}

Region intersect(const Region& a, const Region& b) {
  SP_EXPECT(a.size() == b.size(), "regions of {} and {} dims", a.size(), b.size());
  Region result;
  for (size_t dim = 0; dim < a.size(); ++dim) result.push_back(intersect(a[dim], b[dim]));
  return result;
}

Intervals locate(const Intervals& held, const Intervals& wanted) {
  Intervals result;
  for (const Interval& part : wanted) {
    int64_t position = part.begin;
    while (position < part.end) {
      int64_t offset = 0;
      const Interval* home = nullptr;
      for (const Interval& candidate : held) {
        if (candidate.begin <= position && position < candidate.end) {
          home = &candidate;
          break;
        }
        offset += candidate.size();
      }
      SP_EXPECT(home != nullptr, "position {} is wanted but not held", position);
      const int64_t end = std::min(part.end, home->end);
      result.push_back({offset + position - home->begin, offset + end - home->begin});
      position = end;
    }
  }
  return normalized(std::move(result));
}

Region locate(const Region& held, const Region& wanted) {
  SP_EXPECT(held.size() == wanted.size(), "regions of {} and {} dims", held.size(), wanted.size());
  Region result;
  for (size_t dim = 0; dim < held.size(); ++dim) result.push_back(locate(held[dim], wanted[dim]));
  return result;
}

bool covers(const Intervals& held, const Intervals& wanted) {
  return total_size(intersect(wanted, held)) == total_size(wanted);
}

}  // namespace shardproof
