// Shows the outputs of modules as their callers see them.
#pragma once

#include "harness/training_run.h"

namespace shardproof {

// The rows of the global batch that this rank computes.
struct RowRange {
  SampleRange mine;
  int64_t samples = 0;
};

// Hooks on the modules of a placed model, added outside everything parallelize attached. Idle until
// start(); stop() ends it for good.
class OutputWatcher {
 public:
  OutputWatcher(PlacedModel& placed, Watch watch, RowRange rows, ValueSink sink);
  void start();
  void stop();

 private:
  class Hook;
  struct State;
  std::shared_ptr<State> state_;
};

// True where a module at `path` is watched.
bool is_watched(const std::string& path, Watch watch);

}  // namespace shardproof
