// Level 2: one step of one layout in a working type, against the float64 truth.
#pragma once

#include "harness/layout_check.h"

namespace shardproof {

// What of a layout level 2 compares; nothing where the scenario asks for none of it.
std::set<Kind> level2_kinds(const LayoutRun& run);

// Every rank of `launcher` must call. The truth and the rounding errors are made on the first call
// for a (model, type, data), and shared by all layouts.
LayoutOutcome check_level2(Launcher& launcher, OracleStore& oracles, const Scenario& scenario,
                           const std::filesystem::path& model, const LayoutRun& run,
                           at::ScalarType type, const RunSeams& seams = {});

}  // namespace shardproof
