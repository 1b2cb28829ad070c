#include "io/box_runs.h"

#include "base/check.h"

namespace shardproof {

BoxRuns::BoxRuns(std::span<const int64_t> shape, int64_t element_bytes,
                 std::span<const int64_t> begin, std::span<const int64_t> size) {
  SP_EXPECT(begin.size() == shape.size() && size.size() == shape.size(),
            "a box with {} begins and {} sizes in a tensor of {} dimensions: give one of each a "
            "dimension",
            begin.size(), size.size(), shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    SP_EXPECT(begin[dim] >= 0 && size[dim] >= 0 && begin[dim] <= shape[dim] &&
                  size[dim] <= shape[dim] - begin[dim],
              "box [{}, {} + {}) in dimension {} reaches outside a tensor of shape [{}]",
              begin[dim], begin[dim], size[dim], dim, fmt::join(shape, ", "));

  int64_t stride = element_bytes;
  int64_t run = element_bytes;
  bool in_run = true;  // until the first dimension, from the inside, that the box cuts
  for (size_t dim = shape.size(); dim-- > 0;) {
    first_ += begin[dim] * stride;
    if (in_run) {
      run *= size[dim];
      in_run = size[dim] == shape[dim];
    } else {
      count_ *= size[dim];
      if (size[dim] != 1) outer_.push_back({size[dim], stride});
    }
    stride *= shape[dim];
  }
  run_bytes_ = run;
  if (run == 0) count_ = 0;
}

int64_t BoxRuns::offset(int64_t index) const {
  int64_t offset = first_;
  for (const Outer& outer : outer_) {
    offset += index % outer.size * outer.stride;
    index /= outer.size;
  }
  return offset;
}

}  // namespace shardproof
