#include "comm/mpi/control.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/mpi_error.h"

namespace shardproof {

namespace {

constexpr int kTag = 1;
constexpr int kAbort = 1;
constexpr int kAnnounce = 2;
// Small enough to be sent eagerly: the sender never depends on the receiver.
constexpr size_t kMaxText = 2000;

struct Header {
  int64_t domain = 0;
  int64_t milliseconds = 0;
  int32_t kind = 0;
  int32_t rank = 0;  // in the domain
};

void add_announcement(DomainNews& domain, Announcement announcement) {
  if (domain.announced && domain.announced->until >= announcement.until) return;
  domain.announced = std::move(announcement);
}

}  // namespace

ControlLink::ControlLink() {
  SP_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  SP_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

ControlLink::~ControlLink() {
  // What has not left yet is left to MPI: its bytes must stay. So must the communicator, as freeing
  // it is collective and the other ranks may be anywhere.
  if (!sent_.empty()) new std::list<Sent>(std::move(sent_));
}

std::shared_ptr<DomainNews> ControlLink::join(int64_t id, std::vector<int> members, int rank) {
  auto domain = std::make_shared<DomainNews>();
  domain->members = std::move(members);
  domain->rank = rank;
  domains_[id] = domain;
  return domain;
}

void ControlLink::send_to_others(int64_t id, const DomainNews& domain, int kind,
                                 int64_t milliseconds, const std::string& text) {
  const Header header{id, milliseconds, kind, domain.rank};
  const size_t length = std::min(text.size(), kMaxText);
  for (size_t rank = 0; rank < domain.members.size(); ++rank) {
    if (static_cast<int>(rank) == domain.rank) continue;
    Sent& sent = sent_.emplace_back();
    sent.bytes.resize(sizeof(header) + length);
    std::memcpy(sent.bytes.data(), &header, sizeof(header));
    std::memcpy(sent.bytes.data() + sizeof(header), text.data(), length);
    SP_MPI(MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE,
                     domain.members[rank], kTag, comm_, &sent.request));
  }
}

void ControlLink::abort(int64_t id, DomainNews& domain, const std::string& reason) {
  poll();
  if (domain.aborted) return;
  domain.aborted = Abortion{domain.rank, reason};
  send_to_others(id, domain, kAbort, 0, reason);
}

void ControlLink::announce(int64_t id, DomainNews& domain, std::chrono::milliseconds duration,
                           const std::string& what) {
  add_announcement(domain, {domain.rank, Clock::now() + duration, what});
  send_to_others(id, domain, kAnnounce, duration.count(), what);
}

void ControlLink::take_in(const std::vector<char>& bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::string text(bytes.begin() + sizeof(header), bytes.end());
  const auto at = domains_.find(header.domain);
  if (at == domains_.end()) return;
  const auto domain = at->second.lock();
  if (!domain) {  // dropped here
    domains_.erase(at);
    return;
  }
  if (header.kind == kAbort) {
    if (!domain->aborted) domain->aborted = Abortion{header.rank, std::move(text)};
  } else {
    add_announcement(*domain,
                     {header.rank, Clock::now() + std::chrono::milliseconds(header.milliseconds),
                      std::move(text)});
  }
}

void ControlLink::poll() {
  std::erase_if(sent_, [](Sent& sent) {
    int done = 0;
    SP_MPI(MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
  for (;;) {
    int waiting = 0;
    MPI_Status status;
    SP_MPI(MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &waiting, &status));
    if (waiting == 0) return;
    int count = 0;
    SP_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    std::vector<char> bytes(static_cast<size_t>(count));
    SP_MPI(
        MPI_Recv(bytes.data(), count, MPI_BYTE, status.MPI_SOURCE, kTag, comm_, MPI_STATUS_IGNORE));
    take_in(bytes);
  }
}

}  // namespace shardproof
