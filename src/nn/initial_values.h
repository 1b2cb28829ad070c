// What a parameter starts with where there is no checkpoint: stated, as data, by the module that
// declares the parameter. Who draws the numbers is train/initialize.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardproof {

struct InitialValues {
  enum class Kind { kNormal, kZeros, kOnes };  // normal: mean 0, the model's standard deviation
  Kind kind = Kind::kNormal;
  std::optional<int64_t> zero_row = {};  // this row of dim 0 is zeros: an embedding's padding
};

// A Module that has parameters of its own derives from this too.
class StatesInitialValues {
 public:
  virtual ~StatesInitialValues() = default;
  // `parameter`: the local name. For a tied parameter the module that declares it first is asked.
  virtual InitialValues initial_values(const std::string& parameter) const = 0;
};

}  // namespace shardproof
