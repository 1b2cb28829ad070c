// Faults planted in a run from outside the runtime, to see that they are caught by name.
#pragma once

#include "harness/scenario.h"

namespace shardproof {

// The all-reduce of this module's values in this phase does not happen: each rank goes on with its
// own.
RunSeams drop_all_reduce(std::string module, std::string phase = "forward");

// Every rank loads the rows of this parameter `by` rows further on than it should (round the end).
RunSeams shift_rows(std::string parameter, int64_t by);

// Valid tokens are counted over all ranks, tensor parallel ones too, so that gradients come out too
// small (and the loss right).
RunSeams count_tokens_over_world();

// What a scenario asks for; nothing for none.
RunSeams planted(const FaultSpec& fault);

}  // namespace shardproof
