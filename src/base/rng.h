// Random numbers that are pure functions of (seed, name, index): any rank can make any element of
// any tensor, alone and in any order, and gets the values that the unsharded program gets.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11,
// section 3.3 and table 2.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardproof {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Ten rounds: 128 random bits for a counter under a key.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// FNV-1a, 64 bits, finished with a mixing step: the same on every machine and in every version.
uint64_t hash_name(std::string_view name);

// The stream `name` of a seed. A value depends on (seed, name, index) alone; different kinds of
// numbers at one index come from the same bits.
class CounterRng {
 public:
  CounterRng(uint64_t seed, std::string_view name);

  // In [0, 1), a multiple of 2^-53.
  double uniform(uint64_t index) const;
  // Mean 0, variance 1 (Box and Muller, "A Note on the Generation of Random Normal Deviates",
  // 1958).
  double normal(uint64_t index) const;
  // In [0, bound), with a bias below bound / 2^64. Throws ContractError for bound 0.
  uint64_t integer(uint64_t index, uint64_t bound) const;
  // 128 bits.
  PhiloxCounter bits(uint64_t index) const;

 private:
  PhiloxKey key_;
  uint64_t stream_;
};

}  // namespace shardproof
