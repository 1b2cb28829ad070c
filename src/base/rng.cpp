#include "base/rng.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace shardproof {
namespace {

uint64_t low_bits(const PhiloxCounter& bits) { return uint64_t{bits[1]} << 32 | bits[0]; }
uint64_t high_bits(const PhiloxCounter& bits) { return uint64_t{bits[3]} << 32 | bits[2]; }

double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  // FNV-1a mixes its last characters little: finish as splitmix64 does.
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

CounterRng::CounterRng(uint64_t seed, std::string_view name)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      stream_(hash_name(name)) {}

PhiloxCounter CounterRng::bits(uint64_t index) const {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                     static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                    key_);
}

double CounterRng::uniform(uint64_t index) const { return unit_interval(low_bits(bits(index))); }

double CounterRng::normal(uint64_t index) const {
  const PhiloxCounter drawn = bits(index);
  const double radius = std::sqrt(-2 * std::log1p(-unit_interval(low_bits(drawn))));
  return radius * std::cos(2 * std::numbers::pi * unit_interval(high_bits(drawn)));
}

uint64_t CounterRng::integer(uint64_t index, uint64_t bound) const {
  SP_EXPECT(bound > 0, "a random integer below 0 was asked for; the bound must be 1 or more");
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{low_bits(bits(index))} * bound >> 64);
}

}  // namespace shardproof
