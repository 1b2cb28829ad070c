// Every return code of MPI is checked through SP_MPI.
#pragma once

#include <mpi.h>

namespace shardproof::detail {
void check_mpi(int code, const char* call);
}  // namespace shardproof::detail

// Throws CommError with the call and MPI's own words. The communicators must have
// MPI_ERRORS_RETURN.
#define SP_MPI(call) ::shardproof::detail::check_mpi((call), #call)
