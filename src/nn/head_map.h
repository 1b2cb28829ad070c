// Which heads of grouped-query attention a rank holds, and which key/value head each query head
// reads. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/interval.h"

namespace shardproof {

struct AttentionHeads {
  int64_t queries = 0;  // of the whole model
  int64_t keys = 0;     // key/value heads of the whole model; divides `queries`
  int64_t head_dim = 0;
};

// The global heads that `held` positions are made of, in local order. Throws ContractError where a
// head is held in part.
std::vector<int64_t> heads_of(const Intervals& held, int64_t head_dim);

// The heads that an output of `width` is made of, of `heads` in all, where `held` are the rows held
// of the weight that gave it: those, or all where it was gathered since. Throws ContractError where
// it is neither.
std::vector<int64_t> heads_of_output(int64_t width, int64_t heads, int64_t head_dim,
                                     const Intervals& held);

// For each of the local query heads, the local position of its key/value head (global: query head /
// (queries / keys)). Throws ContractError where that head is not held.
std::vector<int64_t> key_positions(const AttentionHeads& heads,
                                   const std::vector<int64_t>& query_heads,
                                   const std::vector<int64_t>& key_heads);

// True where local query head i reads local key/value head i / n, n being the same for all of them.
bool is_uniform(const std::vector<int64_t>& positions, int64_t key_count);

}  // namespace shardproof
