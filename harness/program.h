// The program as a library: `shardproof` with model families of one's own.
#pragma once

#include "models/family.h"

namespace shardproof {

// All of main(): the commands run, list and generate, on the ranks that mpirun started or on this
// process alone. Call it once, first thing. Returns the exit status, the same on all ranks: 0
// everything held; 1 a check failed; 2 the input or the call is wrong, and nothing was run or
// written; 3 the run broke.
int shardproof_main(int argc, char** argv, const FamilyRegistry& families);

}  // namespace shardproof
