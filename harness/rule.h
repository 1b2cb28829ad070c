// The rules that say how far a run may be from the truth.
//
// Level 1: both runs in float64. Error at most 1e-10 of the norm of the truth, Frobenius.
//
// Level 2: the run in its working type, the truth in float64. Error at most kappa * max(error of
// the unsharded run in that type, RMS error of the rounding twins, eps * norm of the truth),
// Frobenius, whatever the size of the tensor; eps is epsilon_of(type).
//
// The twins are there because an unsharded error that is near zero by chance proves nothing. That
// happens to scalars and small tensors, and to large ones too where a few elements make up the
// norm: outputs with massive activations (SmolLM2-135M in bfloat16 from layer 11 on: 0.5% in the
// unsharded run of one batch, 10% in its twins). Small tensors are not compared by their norms: a
// difference of norms comes out near zero by chance in the twins as well (5 alarms in 900 clean
// runs of a small model in float32, none with Frobenius norms), and is blind to order and sign.
#pragma once

#include "harness/run_record.h"

namespace shardproof {

inline constexpr double kAllowedError = 1e-10;  // of level 1: of the norm of the truth
inline constexpr double kZeroNorm = 1e-13;      // of the norm of all values of its kind
inline constexpr double kKappa = 4;             // of level 2

// How far rounding alone takes one value from its truth, as level 2 measures it.
struct RoundingError {
  double unsharded = 0;  // of the unsharded run in the working type
  double twins = 0;      // root mean square over the twins
};

struct RoundingErrors {
  at::ScalarType dtype = at::kFloat;
  std::vector<RoundingError> by_entry;  // of the record of the truth
};

// What one value is held to.
struct Bound {
  double allowed = kAllowedError;  // the largest error that passes / norm of the truth
  double zero = 0;  // where the truth is zero by mathematics: the largest norm that is zero too
};

// A norm at or below which the truth is zero by mathematics.
double zero_norm(const RunRecord& truth, const RecordEntry& entry);

Bound level1_bound(const RunRecord& truth, const RecordEntry& entry);
// `allowed` is NaN, which nothing passes, where the unsharded run or a twin was not finite.
Bound level2_bound(const RunRecord& truth, const RecordEntry& entry,
                   const RoundingErrors& rounding);

}  // namespace shardproof
