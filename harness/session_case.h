// The tests that a session makes of its scenarios.
#pragma once

#include "harness/scenario.h"

namespace shardproof {

// One test: a layout of a model that trains, in float64 or a working type, or generates, or the
// model's comparison with transformers where there is no layout. Points into its scenario.
struct Case {
  const Scenario* scenario;
  std::filesystem::path model;
  const LayoutRun* run;
  std::optional<at::ScalarType> level2;     // the working type
  std::optional<at::ScalarType> generated;  // the type in which the layout generates

  std::string layout() const;  // "single" where there is none
  std::string dtype() const;   // "" where there is more than one
  std::string test() const;    // "model/layout", "model/layout float32", "model/transformers"
  std::string name() const { return scenario->name + "." + test(); }
  RanksAs ranks_as() const { return run != nullptr ? run->ranks_as : RanksAs::kThreads; }
  int64_t ranks() const { return run != nullptr ? run->ranks() : 1; }
};

// In order, those whose names the filter (a glob, "" = all) lets through.
std::vector<Case> all_cases(const std::vector<Scenario>& scenarios, const std::string& filter);

}  // namespace shardproof
