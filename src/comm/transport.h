// What a backend provides: one rank's end of an abort domain. It moves tagged messages between the
// domain's ranks and carries the news of aborts and announcements. Everything else (collectives,
// groups, reductions, waiting) is common code on top: message_communicator.h, engine.h.
//
// All calls of one Transport come from one thread, that of its rank; abort() may come from any.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardproof {

using Clock = std::chrono::steady_clock;

enum class Channel { kOperation, kUser };  // collectives | send and recv

struct Tag {
  Channel channel = Channel::kOperation;
  int64_t context = 0;  // the communicator, numbered within the domain
  int64_t number = 0;   // sequence number of the operation | the user's tag
};

// Contiguous bytes and the tensor that keeps them alive.
struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
  at::Tensor owner;
};

// A message under way. Destroyed before it is complete, it keeps its buffer alive for as long as
// the backend may still touch it (for ever, if need be).
class Request {
 public:
  virtual ~Request() = default;
  // True once complete. Throws CommError if the message's size is not the one expected.
  virtual bool test() = 0;
};

struct Abortion {
  int rank = 0;  // in the domain
  std::string reason;
};

struct Announcement {
  int rank = 0;  // in the domain
  Clock::time_point until;
  std::string what;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;  // in the domain
  virtual int size() const = 0;
  virtual int64_t max_context() const = 0;
  virtual int64_t max_number() const = 0;  // of a Tag

  // Messages between two ranks with one tag arrive in order. Sizes must agree.
  virtual std::unique_ptr<Request> post_send(int to, const Tag& tag, Buffer buffer) = 0;
  virtual std::unique_ptr<Request> post_recv(int from, const Tag& tag, Buffer buffer) = 0;

  // News, as known here by now.
  virtual std::optional<Abortion> aborted() = 0;
  virtual std::optional<Announcement> announced() = 0;  // the one that lasts longest
  virtual void abort(const std::string& reason) = 0;
  virtual void announce(std::chrono::milliseconds duration, const std::string& what) = 0;

  // A waiter reads activity(), tests its requests, then idles: idle() returns soon after anything
  // has happened since `seen`, and at the latest at `until`.
  virtual uint64_t activity() = 0;
  virtual void idle(uint64_t seen, Clock::time_point until) = 0;

  // Collective over `members` (ranks in this domain, the same list on each, all known to have
  // arrived): a new domain of these ranks. `id` is new to each of them.
  virtual std::unique_ptr<Transport> new_domain(int64_t id, const std::vector<int>& members) = 0;
};

}  // namespace shardproof
