#include "comm/mpi/mpi_world.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "base/check.h"
#include "comm/message_communicator.h"
#include "comm/mpi/mpi_error.h"
#include "comm/mpi/mpi_transport.h"

namespace shardproof {

MpiEnvironment::MpiEnvironment(int& argc, char**& argv) {
  int provided = MPI_THREAD_SINGLE;
  SP_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided));
  SP_EXPECT(provided >= MPI_THREAD_FUNNELED,
            "this MPI gives thread level {}: it must allow programs with threads", provided);
  SP_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  SP_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  SP_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
}

MpiEnvironment::~MpiEnvironment() {
  if (const int code = MPI_Finalize(); code != MPI_SUCCESS) {
    std::fputs(fmt::format("MPI_Finalize failed with code {}\n", code).c_str(), stderr);
  }
}

CommPtr make_mpi_world(const std::string& name) {
  int initialized = 0;
  SP_MPI(MPI_Initialized(&initialized));
  SP_EXPECT(initialized != 0, "MPI is not initialised: make an MpiEnvironment first");
  return std::make_shared<MessageCommunicator>(make_mpi_transport(), name);
}

}  // namespace shardproof
