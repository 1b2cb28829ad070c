// The progress engine of one rank in one domain. All communicators of the domain share it, so that
// whoever waits for one operation also moves every other one on: ranks may wait in different
// orders.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/operation.h"
#include "comm/transport.h"

namespace shardproof {

class Engine {
 public:
  static constexpr std::chrono::milliseconds kDefaultDeadline{120'000};

  // `next_domain` is shared by all domains of this rank.
  Engine(std::unique_ptr<Transport> transport, std::shared_ptr<int64_t> next_domain)
      : next_domain(std::move(next_domain)), transport_(std::move(transport)) {}

  Transport& transport() { return *transport_; }
  // Throws AbortedError once the domain is aborted, and lets go of all operations.
  void check_aborted();
  // Takes a started operation into the list of those to be moved on.
  void start(const std::shared_ptr<Operation>& operation);
  // Returns when the operation is done; throws TimeoutError or AbortedError.
  void wait(Operation& operation);

  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  std::chrono::milliseconds deadline() const { return deadline_; }

  // Numbers for new communicators and new domains; agreed by their ranks
  // (message_communicator.cpp).
  int64_t next_context = 1;
  std::shared_ptr<int64_t> next_domain;

 private:
  void advance();
  [[noreturn]] void time_out(const Operation& operation, Clock::time_point begin);

  std::unique_ptr<Transport> transport_;
  std::vector<std::shared_ptr<Operation>> active_;
  std::chrono::milliseconds deadline_ = kDefaultDeadline;
};

}  // namespace shardproof
