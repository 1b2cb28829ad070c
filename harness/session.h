// Runs scenarios as GoogleTest tests: one for each model and layout, and one for each model that is
// compared with transformers.
#pragma once

#include "harness/program_world.h"
#include "harness/results.h"
#include "harness/scenario.h"

namespace shardproof {

struct SessionOptions {
  std::filesystem::path out;  // for results.json, junit.xml and what is kept while running
  std::string filter;         // glob over "scenario.model/layout"; "" = all
  int64_t most_threads = 0;   // of runs whose ranks are threads; 0 = any number
  bool quiet = false;         // nothing on stdout
  bool allow_skips = false;
};

// "scenario.model/layout" of every test, in order, that the filter lets through.
std::vector<std::string> test_names(const std::vector<Scenario>& scenarios,
                                    const std::string& filter);

// Collective over the program's ranks. Runs everything, prints a line a comparison on rank 0, and
// writes results.json and junit.xml there. `results` comes with command, host and started. Throws
// InputError, before anything runs, where the filter lets nothing through.
Results run_session(const ProgramWorld& world, const std::vector<Scenario>& scenarios,
                    const SessionOptions& options, Results results);

}  // namespace shardproof
