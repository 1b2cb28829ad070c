#include "comm/threads/run_ranks.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/message_communicator.h"
#include "comm/threads/thread_transport.h"

namespace shardproof {

namespace {

struct Failure {
  int rank = 0;
  std::exception_ptr error;
  std::string reason;
  bool aborted = false;  // only woken by another rank's failure
};

Failure current_failure(int rank) {
  Failure failure{rank, std::current_exception(), "unknown exception", false};
  try {
    throw;
  } catch (const AbortedError& error) {
    failure.reason = error.what();
    failure.aborted = true;
  } catch (const c10::Error& error) {
    failure.reason = error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure.reason = error.what();
  } catch (...) {  // kept in `error`, and thrown again by run_ranks
  }
  return failure;
}

// What the threads share, under one lock.
class Outcome {
 public:
  explicit Outcome(int ranks) : running_(static_cast<size_t>(ranks), true) {}

  void fail(Failure failure) {
    const std::lock_guard lock(mutex_);
    if (!first_ || (first_->aborted && !failure.aborted)) first_ = std::move(failure);
    changed_.notify_all();
  }

  void end(int rank) {
    const std::lock_guard lock(mutex_);
    running_[static_cast<size_t>(rank)] = false;
    changed_.notify_all();
  }

  // Returns when all ranks have ended.
  void watch(const RunRanksOptions& options) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return first_ || running().empty(); });
    if (changed_.wait_for(lock, options.grace, [&] { return running().empty(); })) return;
    if (!options.stuck) return;
    const auto message =
        fmt::format("ranks {} still run {} ms after rank {} failed: {}", fmt::join(running(), ", "),
                    options.grace.count(), first_->rank, first_->reason);
    lock.unlock();
    options.stuck(message);
  }

  const std::optional<Failure>& first() const { return first_; }  // after all have ended

 private:
  std::vector<int> running() const {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < running_.size(); ++rank) {
      if (running_[rank]) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> running_;
  std::optional<Failure> first_;
};

}  // namespace

std::vector<CommPtr> make_thread_world(int n, const std::string& name) {
  std::vector<CommPtr> world;
  for (auto& transport : make_thread_transports(n)) {
    world.push_back(std::make_shared<MessageCommunicator>(std::move(transport), name));
  }
  return world;
}

void run_ranks(int n, const std::function<void(CommPtr)>& body, const RunRanksOptions& options) {
  std::vector<CommPtr> world = make_thread_world(n);
  Outcome outcome(n);
  const int threads_before = at::get_num_threads();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank, comm = std::move(world[static_cast<size_t>(rank)])]() mutable {
      at::set_num_threads(1);
      comm->set_deadline(options.deadline);
      try {
        body(comm);
      } catch (...) {
        const Failure failure = current_failure(rank);
        comm->abort(failure.reason);
        outcome.fail(failure);
      }
      comm.reset();
      outcome.end(rank);
    });
  }
  outcome.watch(options);
  threads.clear();  // joins
  at::set_num_threads(threads_before);
  if (outcome.first()) std::rethrow_exception(outcome.first()->error);
}

}  // namespace shardproof
