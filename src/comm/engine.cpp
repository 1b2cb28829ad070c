#include "comm/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace shardproof {

namespace {

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Engine::check_aborted() {
  if (auto abortion = transport_->aborted()) {
    active_.clear();
    throw AbortedError(abortion->rank, std::move(abortion->reason));
  }
}

void Engine::advance() {
  // An operation that throws leaves gaps behind.
  std::erase_if(active_,
                [](const std::shared_ptr<Operation>& one) { return !one || one->advance(); });
}

void Engine::start(const std::shared_ptr<Operation>& operation) {
  active_.push_back(operation);
  advance();
}

void Engine::wait(Operation& operation) {
  const auto begin = Clock::now();
  auto limit = begin + deadline_;
  while (!operation.done()) {
    const uint64_t seen = transport_->activity();
    check_aborted();
    advance();
    if (operation.done()) return;
    if (const auto announcement = transport_->announced()) {
      limit = std::max(limit, announcement->until);
    }
    if (Clock::now() >= limit) time_out(operation, begin);
    transport_->idle(seen, limit);
  }
}

void Engine::time_out(const Operation& operation, Clock::time_point begin) {
  std::string message = fmt::format(
      "rank {} waited {:.1f} s for {}: no answer from {} within the deadline of {:.1f} s",
      transport_->rank(), seconds(Clock::now() - begin), operation.describe(), operation.missing(),
      seconds(deadline_));
  if (const auto announcement = transport_->announced()) {
    message += fmt::format("; rank {} had announced \"{}\", which should have ended {:.1f} s ago",
                           announcement->rank, announcement->what,
                           seconds(Clock::now() - announcement->until));
  }
  message += "; see what those ranks do, or set a longer deadline";
  throw TimeoutError(message);
}

}  // namespace shardproof
