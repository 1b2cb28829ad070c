// Faults planted in a run from outside the runtime, to see that they are caught by name.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "harness/scenario.h"

namespace shardproof {

// A fault, and how often the runs in this process that had its seams met it: a collective that was
// dropped, rows that were shifted, tokens counted over ranks that should not count.
struct Fault {
  RunSeams seams;
  std::shared_ptr<std::atomic<int64_t>> met = std::make_shared<std::atomic<int64_t>>(0);
};

// The all-reduce of this module's values in this phase does not happen: each rank goes on with its
// own.
Fault drop_all_reduce(std::string module, std::string phase = "forward");

// Every rank loads the rows of this parameter `by` rows further on than it should (round the end).
Fault shift_rows(std::string parameter, int64_t by);

// Valid tokens are counted over all ranks, tensor parallel ones too, so that gradients come out too
// small (and the loss right).
Fault count_tokens_over_world();

// What a scenario asks for; nothing for none.
Fault planted(const FaultSpec& fault);

// Throws InputError where a fault was asked for and the runs, which are over, never met it: a check
// that cannot fail proves nothing.
void check_met(const FaultSpec& spec, const Fault& fault);

}  // namespace shardproof
