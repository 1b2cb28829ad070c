// Measures how far rounding alone takes a step in a working type from the float64 truth.
#pragma once

#include "comm/communicator.h"
#include "harness/rule.h"
#include "harness/training_run.h"

namespace shardproof {

inline constexpr int64_t kTwins = 8;

// What level 2 compares: a value of one step whose gradients are wanted.
const std::set<Kind>& level2_kinds();

// The run of level 2 in a working type: one step without an update, of everything else what `spec`
// says.
TrainingSpec level2_run(TrainingSpec spec, at::ScalarType type);
// Its truth: the same in float64, from the weights rounded to that type.
TrainingSpec level2_truth(TrainingSpec spec, at::ScalarType type);

// Collective over `comm`, whose ranks share the work: the unsharded run `spec` and its twins, each
// on one rank, against `truth`. The same on all ranks.
RoundingErrors measure_rounding(Communicator& comm, const TrainingSpec& spec,
                                const RunRecord& truth);

// As a small file. Numbers that are not finite come back as NaN.
void write_rounding(const std::filesystem::path& file, const RoundingErrors& rounding);
RoundingErrors read_rounding(const std::filesystem::path& file, at::ScalarType dtype);

}  // namespace shardproof
