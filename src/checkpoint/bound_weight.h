// A weight source for one parameter: numbers put into names, stacks written out, shapes known.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/weight_map.h"
#include "io/checkpoint_index.h"

namespace shardproof {

// A size that is known only once the files are looked at: of a part of a concatenation.
inline constexpr int64_t kUnknownSize = -1;

struct BoundWeight {
  WeightSource::Kind kind = WeightSource::Kind::kTensor;
  std::vector<std::string> tensors;  // whole names
  std::vector<BoundWeight> parts;    // of a stack: one for every position
  int64_t dim = 0;
  int64_t offset = 0;          // kSplit: where the part begins in the whole
  std::vector<int64_t> shape;  // of the values
};

// `numbers`: what the `*`s of the rule's pattern stand for; `shape`: that of the parameter. Pure.
// ContractError where the source cannot have this shape or names have not as many `*`s as there are
// numbers.
BoundWeight bind_weight(const WeightSource& source, const std::vector<std::string>& numbers,
                        const std::vector<int64_t>& shape);

// All tensors, in order.
std::vector<std::string> tensor_names(const BoundWeight& weight);

// Fills in the sizes that bind_weight() could not know. All tensors must be there. InputError
// naming file and tensor where shapes or dtypes are not those of the model: plain tensors must be
// floating point of 16 bits or more, MXFP4 ones U8.
void check_against_files(BoundWeight& weight, const CheckpointFiles& files);

}  // namespace shardproof
