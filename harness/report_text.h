// Results as text for people.
#pragma once

#include "harness/results.h"

namespace shardproof {

// One line a comparison, and on failure a second one that names the first wrong tensor.
std::string group_line(const Group& group);
// One line a scenario and model, and the totals.
std::string summary_table(const Results& results, bool allow_skips);

}  // namespace shardproof
