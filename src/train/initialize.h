// Parameters from a config alone: what a model starts with where there is no checkpoint.
#pragma once

#include <cstdint>

#include "nn/module.h"

namespace shardproof {

struct InitializeOptions {
  // Standard deviation of normal values; `initializer_range` of a config.json.
  double standard_deviation = 0.02;
  // Standard deviation of what is added to zeros and ones (not to an embedding's padding row). A
  // check of parity gives one: a bias of zeros does not show that it was added twice.
  double spread = 0;
};

// Not collective. Fills `kept` of each parameter with the values of exactly its region, as the
// module that declares it states them (nn/initial_values.h). A value depends on the seed, the
// canonical name, the global shape and the position alone: each rank makes its own, and whatever
// the layout they are bit for bit those of the unsharded model. They are drawn in double and
// converted to kept's dtype; beside `kept` 32 KiB are needed. The parameters must be placed. Throws
// ContractError for a module that has parameters and does not state what they start with.
void initialize_parameters(Module& model, uint64_t seed, const InitializeOptions& options = {});

}  // namespace shardproof
