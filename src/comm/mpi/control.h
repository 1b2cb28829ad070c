// News of aborts and announcements: small messages on a communicator of their own, which every
// waiter polls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.h"

namespace shardproof {

// What one rank knows of a domain.
struct DomainNews {
  int rank = 0;              // this rank, in the domain
  std::vector<int> members;  // world ranks
  std::optional<Abortion> aborted;
  std::optional<Announcement> announced;
};

class ControlLink {
 public:
  ControlLink();  // collective over MPI_COMM_WORLD
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // From now on news of domain `id` is taken in, until the shared pointer is dropped.
  std::shared_ptr<DomainNews> join(int64_t id, std::vector<int> members, int rank);
  void abort(int64_t id, DomainNews& domain, const std::string& reason);
  void announce(int64_t id, DomainNews& domain, std::chrono::milliseconds duration,
                const std::string& what);
  void poll();

 private:
  struct Sent {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<char> bytes;
  };
  void send_to_others(int64_t id, const DomainNews& domain, int kind, int64_t milliseconds,
                      const std::string& text);
  void take_in(const std::vector<char>& bytes);

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::map<int64_t, std::weak_ptr<DomainNews>> domains_;
  std::list<Sent> sent_;
};

}  // namespace shardproof
