#include "harness/working_type.h"

#include <c10/util/BFloat16.h>

#include <limits>

#include "base/check.h"

namespace shardproof {

const char* working_type_name(at::ScalarType type) {
  if (type == at::kDouble) return "float64";
  if (type == at::kFloat) return "float32";
  SP_EXPECT(type == at::kBFloat16, "{} is no type that a model is trained in", c10::toString(type));
  return "bfloat16";
}

double epsilon_of(at::ScalarType type) {
  if (type == at::kDouble) return std::numeric_limits<double>::epsilon();
  if (type == at::kFloat) return std::numeric_limits<float>::epsilon();
  SP_EXPECT(type == at::kBFloat16, "{} is no type that a model is trained in", c10::toString(type));
  return std::numeric_limits<c10::BFloat16>::epsilon();
}

}  // namespace shardproof
