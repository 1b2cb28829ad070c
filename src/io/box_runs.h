// Where a rectangular box lies in the bytes of a row-major tensor: pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardproof {

// The box as equally long contiguous runs, in the order of its own row-major elements; trailing
// dimensions that the box covers whole are one run. A box without elements has no runs.
class BoxRuns {
 public:
  // Box [begin, begin + size) in each dimension of a tensor of `shape`; it must lie inside.
  BoxRuns(std::span<const int64_t> shape, int64_t element_bytes, std::span<const int64_t> begin,
          std::span<const int64_t> size);

  int64_t count() const { return count_; }
  int64_t run_bytes() const { return run_bytes_; }
  // Bytes from the start of the tensor to run `index`. Grows with the index.
  int64_t offset(int64_t index) const;

 private:
  struct Outer {
    int64_t size;
    int64_t stride;  // bytes
  };
  int64_t first_ = 0;
  int64_t run_bytes_ = 0;
  int64_t count_ = 1;
  std::vector<Outer> outer_;  // innermost first
};

}  // namespace shardproof
