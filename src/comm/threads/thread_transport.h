// Ranks as threads of one process. A receiver copies straight from the sender's buffer; the send is
// complete once that is done. Waiters sleep on condition variables.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace shardproof {

// The ends of a new domain of n ranks, the first of its world; each is for one thread.
std::vector<std::unique_ptr<Transport>> make_thread_transports(int n);

}  // namespace shardproof
