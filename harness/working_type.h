// The types that a model is trained in, by the names that PyTorch gives them.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

namespace shardproof {

// "float64", "float32", "bfloat16". Throws ContractError for a type that none is trained in.
const char* working_type_name(at::ScalarType type);

// std::numeric_limits<type>::epsilon(), the gap between 1 and the next number: 2^-23 for float32,
// 2^-7 for bfloat16. Twice the unit roundoff.
double epsilon_of(at::ScalarType type);

}  // namespace shardproof
