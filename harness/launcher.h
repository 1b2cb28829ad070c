// Runs a function on n ranks, whatever ranks are.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"

namespace shardproof {

class Launcher {
 public:
  virtual ~Launcher() = default;
  // The most ranks that run() can give; 0 = any number.
  virtual int64_t most() const = 0;
  // body(comm) on `ranks` ranks; returns, on every caller, when all have returned. `what` is told
  // to those who only wait. Where a rank throws, callers throw.
  virtual void run(int64_t ranks, const std::string& what,
                   const std::function<void(CommPtr)>& body) = 0;
};

// Ranks as threads of this process. `stuck` is called where a rank cannot be stopped, and should
// leave.
std::unique_ptr<Launcher> make_thread_launcher(int64_t most,
                                               std::function<void(const std::string&)> stuck);
// Ranks as the processes of `world`: every one of them must call run(). Fewer ranks than it has
// work on a sub-world while the others wait.
std::unique_ptr<Launcher> make_process_launcher(CommPtr world);

// Collective: `work` on the first rank of `world` while the others wait for it; where it throws,
// all throw.
void on_first_rank(Communicator& world, const std::string& what, const std::function<void()>& work);

// How long those who wait for others' work are told to wait.
inline constexpr std::chrono::minutes kLongestWork{10};

}  // namespace shardproof
