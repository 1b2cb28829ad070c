// Which of its forms a parameter has in a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/bound_weight.h"
#include "nn/parameter.h"

namespace shardproof {

// For each name of the parameter that the checkpoint has it under (several where it is tied), the
// first form whose tensors are all there; at least one. Looks at names only.
//
// Throws InputError where there is none: of a form that is there in part, with what is missing of
// it.
std::vector<BoundWeight> found_forms(const Parameter& parameter, const CheckpointFiles& files,
                                     const WeightMap& map);

bool is_ignored(const WeightMap& map, const std::string& tensor);

}  // namespace shardproof
