// What a test that runs under mpirun is given.
#pragma once

#include "comm/communicator.h"

namespace shardproof {

// All ranks, in an abort domain made for the running test alone: where one rank throws or fails an
// assertion it is aborted with that reason, the others wake, and the next test gets a new one.
// Throws ContractError outside a test.
CommPtr test_world();

}  // namespace shardproof
