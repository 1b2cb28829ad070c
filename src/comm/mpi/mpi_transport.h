// The transport of one process. Each domain has an MPI communicator of its own, so that nothing
// sent in a broken domain can meet a message of another; communicators within a domain are told
// apart by the tag. News (control.h) goes over one more communicator.
#pragma once

#include <memory>

#include "comm/transport.h"

namespace shardproof {

// Collective over MPI_COMM_WORLD.
std::unique_ptr<Transport> make_mpi_transport();

}  // namespace shardproof
