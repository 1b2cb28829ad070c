// A counting allocator for CPU tensors: how many bytes each rank holds, and held at most. Exact,
// also for resizes and scratch inside torch; it does not see `from_blob` memory or what libraries
// allocate on their own.
//
// A block belongs to the rank of the thread that allocates it, wherever it is freed. With ranks as
// threads each thread says which rank it works for (helper threads too); a process that is one rank
// says nothing.
#pragma once

#include <cstdint>

namespace shardproof {

class MemoryMeter {
 public:
  static constexpr int kMaxRanks = 1024;

  // Makes it the allocator of all CPU tensors from now on; again: no-op. Blocks allocated before
  // are not counted and are freed as before. Call it before ranks start.
  static void install();
  static bool installed();

  // The rank that this thread allocates for, 0 at first. Throws ContractError outside [0,
  // kMaxRanks).
  static void set_rank(int rank);
  static int rank();

  // Bytes that blocks of `rank` (by default: of this thread's) ask for now, and the most since
  // reset_peak(), which sets the mark to the current bytes.
  static int64_t current(int rank);
  static int64_t peak(int rank);
  static void reset_peak(int rank);
  static int64_t current() { return current(rank()); }
  static int64_t peak() { return peak(rank()); }
  static void reset_peak() { reset_peak(rank()); }
};

}  // namespace shardproof
