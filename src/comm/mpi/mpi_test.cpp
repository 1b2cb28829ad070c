// The contract on real processes; the program's main has initialised MPI.
#include <gtest/gtest.h>

#include "comm/contract_cases.h"
#include "comm/mpi/mpi_world.h"

namespace shardproof {

namespace {

class MpiContract : public testing::TestWithParam<ContractCase> {};

TEST_P(MpiContract, Holds) { GetParam().run(make_mpi_world()); }

INSTANTIATE_TEST_SUITE_P(Mpi, MpiContract, testing::ValuesIn(contract_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(MpiWorld, FreesDomainsThatAreOver) {
  const CommPtr world = make_mpi_world();
  for (int i = 0; i < 50; ++i) {
    const CommPtr domain = world->new_domain("domain");
    domain->barrier(Site{"", "", "setup"}).wait();
  }
}

}  // namespace

}  // namespace shardproof
