// The layers of a model are alike: what is said of one of them is said once for all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/starred_name.h"
#include "parallel/finding.h"

namespace shardproof {

// {0, 1, 2, 5} -> "{0..2,5}"; {3} -> "3".
std::string shown_numbers(const std::vector<int64_t>& numbers);

// Several names of one pattern as one: "model.layers.{0..29}.mlp". Where more than one place
// differs each of them has its own braces.
std::string folded(const std::vector<std::string>& names);

// Findings that differ in layer numbers only become the first of them, with "(and 29 more alike)"
// at the end of its message. Order is kept, errors before notes.
Findings folded(const Findings& findings);

}  // namespace shardproof
