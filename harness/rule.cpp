#include "harness/rule.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "harness/working_type.h"

namespace shardproof {

double zero_norm(const RunRecord& truth, const RecordEntry& entry) {
  return kZeroNorm * truth.norm_of_kind(entry.key.kind, entry.key.step);
}

Bound level1_bound(const RunRecord& truth, const RecordEntry& entry) {
  return {.zero = zero_norm(truth, entry)};
}

Bound level2_bound(const RunRecord& truth, const RecordEntry& entry,
                   const RoundingErrors& rounding) {
  const RoundingError& error = rounding.by_entry.at(static_cast<size_t>(entry.order));
  const double eps = epsilon_of(rounding.dtype);
  const double floor = eps * entry.norm;
  double allowed = std::nan("");  // std::max would lose one
  if (std::isfinite(error.unsharded) && std::isfinite(error.twins))
    allowed = kKappa * std::max({error.unsharded, error.twins, floor});
  // A sum that is zero by mathematics is, rounded, as large as the rounding of its addends.
  const double noise = eps * truth.norm_of_kind(entry.key.kind, entry.key.step);
  return {.allowed = allowed / entry.norm, .zero = kKappa * std::max(error.unsharded, noise)};
}

}  // namespace shardproof
