// What becomes of the cuts of parameters that do not divide by the ranks.
#pragma once

#include "parallel/resolve.h"

namespace shardproof {

// One finding for each rule and section of a cut, whatever the number of layers:
//   "cut"     the units (heads, groups of heads, rows) do not divide: how many a rank has at most
//             and at least. Ranks that own nothing: an error where a user wrote the rule, else, and
//             for other uneven cuts, a note.
//   "copies"  a note: the units are fewer than the ranks, and neighbours hold copies of them or
//             share them by parts.
// None on axes of one rank.
Findings uneven_cuts(Module& model, const ResolvedPlan& plan);

}  // namespace shardproof
