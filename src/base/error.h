// Error types. Which one is thrown decides the exit status of the program (see harness/main.cpp):
// InputError 2, CheckError 1, CommError and everything else 3.
#pragma once

#include <stdexcept>
#include <string>

namespace shardproof {

// What a user gave is wrong: a file, a key, a layout. The message is one line: the place, the
// values, what to do.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A broken contract inside the program: expect (the caller's duty), ensure (an own promise),
// assert.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A collective could not complete.
class CommError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Some rank called Communicator::abort; everyone waiting in that domain is woken with its reason.
class AbortedError final : public CommError {
 public:
  AbortedError(int rank, std::string reason)
      : CommError("aborted by rank " + std::to_string(rank) + ": " + reason),
        rank_(rank),
        reason_(std::move(reason)) {}
  int rank() const { return rank_; }
  const std::string& reason() const { return reason_; }

 private:
  int rank_;
  std::string reason_;
};

// A peer did not answer before the deadline.
class TimeoutError final : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace shardproof
