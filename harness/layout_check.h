// One layout of one model: run once, compared with every record that the scenario names.
#pragma once

#include "harness/comparison.h"
#include "harness/oracle_store.h"
#include "harness/scenario.h"

namespace shardproof {

struct LayoutOutcome {
  std::string against;    // "single", "dp_replicate=3"
  std::vector<Row> rows;  // on the first rank; empty elsewhere
};

// Every rank of `launcher` must call.
std::vector<LayoutOutcome> check_layout(Launcher& launcher, OracleStore& oracles,
                                        const Scenario& scenario,
                                        const std::filesystem::path& model, const LayoutRun& run,
                                        const RunSeams& seams = {});

}  // namespace shardproof
