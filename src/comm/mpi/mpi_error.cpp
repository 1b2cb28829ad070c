#include "comm/mpi/mpi_error.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"

namespace shardproof::detail {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  throw CommError(fmt::format("MPI error {} in {}: {}", code, call,
                              std::string_view(text, static_cast<size_t>(length))));
}

}  // namespace shardproof::detail
