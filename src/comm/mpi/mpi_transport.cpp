#include "comm/mpi/mpi_transport.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "comm/mpi/control.h"
#include "comm/mpi/mpi_error.h"

namespace shardproof {

namespace {

constexpr size_t kChunk = size_t{1} << 30;  // bytes a message: MPI counts are int
// Ranks may be more than cores: a waiter first only gives way, then sleeps so that the others can
// compute.
constexpr int kYields = 1000;
constexpr std::chrono::microseconds kNap{20};

// How a tag is laid out in the bits that this MPI allows.
struct TagBits {
  int context = 0;
  int number = 0;

  static TagBits of_this_mpi() {
    int* upper = nullptr;
    int found = 0;
    SP_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found));
    SP_ENSURE(found != 0, "MPI does not tell its largest tag (MPI_TAG_UB)");
    const int bits = std::bit_width(static_cast<unsigned>(*upper) + 1U) - 1;
    TagBits result;
    result.context = (bits - 1) / 2 - 3;
    result.number = bits - 1 - result.context;
    return result;
  }

  int encode(const Tag& tag) const {
    const int64_t channel = tag.channel == Channel::kUser ? 1 : 0;
    return static_cast<int>((((channel << context) | tag.context) << number) | tag.number);
  }
};

// What all domains of this process share.
struct World {
  TagBits bits = TagBits::of_this_mpi();
  ControlLink control;
  int size = 0;
  // Communicators of whole-world domains that are over on this rank; freed once they are over on
  // all.
  std::map<int64_t, MPI_Comm> retired;
  int64_t first_unfreed = 0;

  // Collective over all processes, which agree on `next_id`.
  void free_retired(int64_t next_id) {
    const int64_t count = next_id - first_unfreed;
    std::vector<unsigned char> over(static_cast<size_t>(count), 0);
    for (const auto& [id, comm] : retired) over[static_cast<size_t>(id - first_unfreed)] = 1;
    SP_MPI(MPI_Allreduce(MPI_IN_PLACE, over.data(), static_cast<int>(count), MPI_UNSIGNED_CHAR,
                         MPI_MIN, MPI_COMM_WORLD));
    bool all_so_far = true;
    const int64_t first = first_unfreed;
    for (int64_t i = 0; i < count; ++i) {
      if (over[static_cast<size_t>(i)] != 0) {
        SP_MPI(MPI_Comm_free(&retired.at(first + i)));
        retired.erase(first + i);
        if (all_so_far) first_unfreed = first + i + 1;
      } else {
        all_so_far = false;
      }
    }
  }
};

class ReceiveRequest;

// This rank's part of one domain.
struct MpiDomain {
  MpiDomain(std::shared_ptr<World> world, int64_t id, MPI_Comm comm, std::vector<int> members,
            int rank)
      : world(std::move(world)), id(id), comm(comm) {
    news = this->world->control.join(id, std::move(members), rank);
  }
  ~MpiDomain() {
    // Freeing is collective, so not here. A broken domain's communicator is never freed: messages
    // may still be under way in it.
    const bool whole = static_cast<int>(news->members.size()) == world->size;
    if (whole && !broken && !news->aborted) world->retired[id] = comm;
  }
  MpiDomain(const MpiDomain&) = delete;
  MpiDomain& operator=(const MpiDomain&) = delete;

  std::shared_ptr<World> world;
  int64_t id;
  MPI_Comm comm;
  std::shared_ptr<DomainNews> news;
  bool broken = false;                                                    // a message was given up
  std::map<std::pair<int, int>, std::vector<ReceiveRequest*>> receivers;  // by peer and tag
  uint64_t completed = 0;                                                 // messages
};

// A message that MPI has been given. Its buffer is kept for ever if it is given up: MPI may still
// read or write it and cannot be stopped.
class InFlight {
 public:
  InFlight(MpiDomain& domain, const Buffer& buffer) : domain_(domain), buffer_(buffer) {}
  ~InFlight() {
    if (requests_.empty()) return;
    domain_.broken = true;
    new Buffer(buffer_);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  int count_at(size_t begin) const {
    return static_cast<int>(std::min(kChunk, buffer_.bytes - begin));
  }
  std::byte* data_at(size_t begin) const { return static_cast<std::byte*>(buffer_.data) + begin; }
  MPI_Request* add() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  bool test() {
    int done = 0;
    SP_MPI(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                       MPI_STATUSES_IGNORE));
    if (done == 0) return false;
    requests_.clear();
    ++domain_.completed;
    return true;
  }

 private:
  MpiDomain& domain_;
  Buffer buffer_;
  std::vector<MPI_Request> requests_;
};

class SendRequest final : public Request {
 public:
  SendRequest(std::shared_ptr<MpiDomain> domain, int to, int tag, const Buffer& buffer)
      : domain_(std::move(domain)), flight_(*domain_, buffer) {
    for (size_t begin = 0; begin < buffer.bytes; begin += kChunk) {
      SP_MPI(MPI_Isend(flight_.data_at(begin), flight_.count_at(begin), MPI_BYTE, to, tag,
                       domain_->comm, flight_.add()));
    }
  }
  bool test() override { return flight_.test(); }

 private:
  std::shared_ptr<MpiDomain> domain_;
  InFlight flight_;
};

// Looks at a message's size before it receives it: a message longer than its receive overruns the
// buffer where MPI lets the receiver fetch it from the sender's memory. Nor is anything left posted
// when a domain breaks. The first receive of a peer and tag looks first.
class ReceiveRequest final : public Request {
 public:
  ReceiveRequest(std::shared_ptr<MpiDomain> domain, int from, int tag, const Buffer& buffer)
      : domain_(std::move(domain)),
        from_(from),
        tag_(tag),
        bytes_(buffer.bytes),
        flight_(*domain_, buffer) {
    domain_->receivers[{from_, tag_}].push_back(this);
  }
  ~ReceiveRequest() override { leave(); }
  ReceiveRequest(const ReceiveRequest&) = delete;
  ReceiveRequest& operator=(const ReceiveRequest&) = delete;

  bool test() override {
    while (begun_ < bytes_) {
      if (domain_->receivers.at({from_, tag_}).front() != this) return false;
      if (!receive_next()) return false;
    }
    leave();
    return flight_.test();
  }

 private:
  bool receive_next() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    SP_MPI(MPI_Improbe(from_, tag_, domain_->comm, &found, &message, &status));
    if (found == 0) return false;
    int count = 0;
    SP_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    if (count != flight_.count_at(begun_)) {
      domain_->broken = true;  // the message is never received
      throw CommError(fmt::format(
          "rank {} sent {} bytes where {} were expected: the ranks do not call the same operation",
          from_, count, flight_.count_at(begun_)));
    }
    SP_MPI(MPI_Imrecv(flight_.data_at(begun_), count, MPI_BYTE, &message, flight_.add()));
    begun_ += static_cast<size_t>(count);
    return true;
  }

  void leave() {
    const auto at = domain_->receivers.find({from_, tag_});
    if (at == domain_->receivers.end()) return;
    std::erase(at->second, this);
    if (at->second.empty()) domain_->receivers.erase(at);
  }

  std::shared_ptr<MpiDomain> domain_;
  int from_;
  int tag_;
  size_t bytes_;
  size_t begun_ = 0;  // bytes that MPI has been given
  InFlight flight_;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(std::shared_ptr<MpiDomain> domain) : domain_(std::move(domain)) {}

  int rank() const override { return domain_->news->rank; }
  int size() const override { return static_cast<int>(domain_->news->members.size()); }
  int64_t max_context() const override { return (int64_t{1} << world().bits.context) - 1; }
  int64_t max_number() const override { return (int64_t{1} << world().bits.number) - 1; }

  std::unique_ptr<Request> post_send(int to, const Tag& tag, Buffer buffer) override {
    return std::make_unique<SendRequest>(domain_, to, world().bits.encode(tag), buffer);
  }
  std::unique_ptr<Request> post_recv(int from, const Tag& tag, Buffer buffer) override {
    return std::make_unique<ReceiveRequest>(domain_, from, world().bits.encode(tag), buffer);
  }

  std::optional<Abortion> aborted() override {
    world().control.poll();
    return domain_->news->aborted;
  }
  std::optional<Announcement> announced() override { return domain_->news->announced; }
  void abort(const std::string& reason) override {
    world().control.abort(domain_->id, *domain_->news, reason);
  }
  void announce(std::chrono::milliseconds duration, const std::string& what) override {
    world().control.announce(domain_->id, *domain_->news, duration, what);
  }

  uint64_t activity() override { return domain_->completed; }
  void idle(uint64_t seen, Clock::time_point /*until*/) override {
    if (domain_->completed != seen) {
      idle_rounds_ = 0;
    } else if (++idle_rounds_ < kYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }

  std::unique_ptr<Transport> new_domain(int64_t id, const std::vector<int>& members) override {
    std::vector<int> in_world;
    for (const int member : members) {
      in_world.push_back(domain_->news->members[static_cast<size_t>(member)]);
    }
    if (static_cast<int>(members.size()) == world().size) world().free_retired(id);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    SP_MPI(MPI_Comm_group(domain_->comm, &all));
    SP_MPI(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group));
    SP_MPI(MPI_Comm_create_group(domain_->comm, group, 0, &comm));
    SP_MPI(MPI_Group_free(&group));
    SP_MPI(MPI_Group_free(&all));
    SP_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    const auto rank = std::find(members.begin(), members.end(), this->rank()) - members.begin();
    return std::make_unique<MpiTransport>(std::make_shared<MpiDomain>(
        domain_->world, id, comm, std::move(in_world), static_cast<int>(rank)));
  }

 private:
  World& world() const { return *domain_->world; }

  std::shared_ptr<MpiDomain> domain_;
  int idle_rounds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() {
  auto world = std::make_shared<World>();
  int rank = 0;
  SP_MPI(MPI_Comm_size(MPI_COMM_WORLD, &world->size));
  SP_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  MPI_Comm comm = MPI_COMM_NULL;
  SP_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  SP_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  std::vector<int> members(static_cast<size_t>(world->size));
  for (int i = 0; i < world->size; ++i) members[static_cast<size_t>(i)] = i;
  return std::make_unique<MpiTransport>(
      std::make_shared<MpiDomain>(std::move(world), 0, comm, std::move(members), rank));
}

}  // namespace shardproof
