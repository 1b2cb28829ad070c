// The tests of the communicator contract, run against every backend and world size: each case is
// called by all ranks of a world, checks values with EXPECT_..., and leaves the world fit for the
// next case.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardproof {

struct ContractCase {
  std::string name;
  void (*run)(const CommPtr& world);
};

std::vector<ContractCase> collective_cases();  // contract_collectives.cpp
std::vector<ContractCase> failure_cases();     // contract_failures.cpp
std::vector<ContractCase> contract_cases();    // both

}  // namespace shardproof
