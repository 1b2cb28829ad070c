// Ranks as threads of one process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardproof {

// The communicators of a world of n ranks; each is for one thread.
std::vector<CommPtr> make_thread_world(int n, const std::string& name = "world");

struct RunRanksOptions {
  std::chrono::milliseconds deadline{120'000};  // of each rank's world communicator
  // How long the other ranks may go on after one has failed (they are woken from waits at once). A
  // thread cannot be killed: after that `stuck` is called with the ranks and the first failure,
  // from the calling thread, and may leave the process; when it returns, or is empty, run_ranks
  // waits on.
  std::chrono::milliseconds grace{10'000};
  std::function<void(const std::string&)> stuck = {};
};

// Calls body(world) on n threads, one ATen thread each, and joins them. Where ranks throw, the
// world is aborted with the first failing rank and its reason, and that rank's exception is thrown
// again here (one that is not an AbortedError, if there is any).
void run_ranks(int n, const std::function<void(CommPtr)>& body,
               const RunRanksOptions& options = {});

}  // namespace shardproof
