#include "comm/communicator.h"

namespace shardproof {

void Work::wait() {
  if (!state_) return;
  const auto state = std::move(state_);
  state_.reset();
  state->wait();
}

}  // namespace shardproof
