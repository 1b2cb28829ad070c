#include "nn/head_map.h"

#include <algorithm>

#include "base/check.h"

namespace shardproof {

std::vector<int64_t> heads_of(const Intervals& held, int64_t head_dim) {
  std::vector<int64_t> heads;
  for (const Interval& interval : held) {
    SP_EXPECT(interval.begin % head_dim == 0 && interval.end % head_dim == 0,
              "positions [{}, {}) are no whole heads of {}", interval.begin, interval.end,
              head_dim);
    for (int64_t head = interval.begin / head_dim; head < interval.end / head_dim; ++head) {
      heads.push_back(head);
    }
  }
  return heads;
}

std::vector<int64_t> heads_of_output(int64_t width, int64_t heads, int64_t head_dim,
                                     const Intervals& held) {
  const int64_t whole = heads * head_dim;
  const bool gathered = width == whole && total_size(held) != whole;
  std::vector<int64_t> given = heads_of(gathered ? Intervals{{0, whole}} : held, head_dim);
  SP_EXPECT(static_cast<int64_t>(given.size()) * head_dim == width,
            "its output has width {}, the rows held of its weight are the heads {} of {} each: it "
            "must stay as cut or become whole",
            width, given, head_dim);
  return given;
}

std::vector<int64_t> key_positions(const AttentionHeads& heads,
                                   const std::vector<int64_t>& query_heads,
                                   const std::vector<int64_t>& key_heads) {
  std::vector<int64_t> positions;
  for (const int64_t query : query_heads) {
    const int64_t wanted = query / (heads.queries / heads.keys);
    const auto found = std::find(key_heads.begin(), key_heads.end(), wanted);
    SP_EXPECT(found != key_heads.end(),
              "query head {} reads key/value head {}, but the key/value heads held are {}", query,
              wanted, key_heads);
    positions.push_back(found - key_heads.begin());
  }
  return positions;
}

bool is_uniform(const std::vector<int64_t>& positions, int64_t key_count) {
  const auto count = static_cast<int64_t>(positions.size());
  if (count == 0 || key_count == 0 || count % key_count != 0) return count == 0 && key_count == 0;
  for (int64_t i = 0; i < count; ++i) {
    if (positions[i] != i / (count / key_count)) return false;
  }
  return true;
}

}  // namespace shardproof
