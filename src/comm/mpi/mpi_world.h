// Ranks as processes under mpirun.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace shardproof {

// Initialises MPI for calls from one thread at a time, and finalises it. One in a program, in
// main().
class MpiEnvironment {
 public:
  MpiEnvironment(int& argc, char**& argv);
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  int rank() const { return rank_; }  // in MPI_COMM_WORLD
  int size() const { return size_; }

 private:
  int rank_ = 0;
  int size_ = 1;
};

// Collective over all processes: a world of its own; needs a living MpiEnvironment.
CommPtr make_mpi_world(const std::string& name = "world");

}  // namespace shardproof
