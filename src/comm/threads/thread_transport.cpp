#include "comm/threads/thread_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace shardproof {

namespace {

// What a sender offers. Its owner stays alive here even if the sender has gone.
struct Offer {
  Buffer buffer;
  int from = 0;
  std::atomic<bool> copied = false;
};

// What a receiver waits for; `offer` is set under the lock before `matched`.
struct Wanted {
  std::shared_ptr<Offer> offer;
  std::atomic<bool> matched = false;
};

using Key = std::tuple<int, Channel, int64_t, int64_t>;  // from, then the tag

// Offers and wants meet in the order in which they were posted; one of the two queues is empty.
struct Mailbox {
  std::deque<std::shared_ptr<Offer>> offers;
  std::deque<std::shared_ptr<Wanted>> wanted;
};

struct Rank {
  std::condition_variable changed;
  uint64_t activity = 0;
  std::map<Key, Mailbox> mailboxes;  // for messages to this rank
};

class ThreadDomain;

// Where the ranks of a domain under construction find each other.
struct Nursery {
  struct Entry {
    std::shared_ptr<ThreadDomain> domain;
    size_t arrived = 0;
  };
  std::mutex mutex;
  std::map<std::pair<int64_t, std::vector<int>>, Entry> entries;
};

class ThreadDomain {
 public:
  ThreadDomain(int size, std::shared_ptr<Nursery> nursery)
      : nursery_(std::move(nursery)), ranks_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  const std::shared_ptr<Nursery>& nursery() const { return nursery_; }

  void post(int to, const Key& key, std::shared_ptr<Offer> offer) {
    const std::lock_guard lock(mutex_);
    Rank& rank = at(to);
    Mailbox& box = rank.mailboxes[key];
    box.offers.push_back(std::move(offer));
    match(rank, key, box);
    wake(rank);
  }

  void post(int to, const Key& key, std::shared_ptr<Wanted> wanted) {
    const std::lock_guard lock(mutex_);
    Rank& rank = at(to);
    Mailbox& box = rank.mailboxes[key];
    box.wanted.push_back(std::move(wanted));
    match(rank, key, box);
  }

  void wake(int rank) {
    const std::lock_guard lock(mutex_);
    wake(at(rank));
  }

  uint64_t activity(int rank) {
    const std::lock_guard lock(mutex_);
    return at(rank).activity;
  }

  void idle(int rank, uint64_t seen, Clock::time_point until) {
    std::unique_lock lock(mutex_);
    at(rank).changed.wait_until(lock, until, [&] { return at(rank).activity != seen; });
  }

  void abort(int rank, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    aborted_ = Abortion{rank, reason};
    for (Rank& one : ranks_) wake(one);
  }

  void announce(Announcement announcement) {
    const std::lock_guard lock(mutex_);
    if (announced_ && announced_->until >= announcement.until) return;
    announced_ = std::move(announcement);
    for (Rank& one : ranks_) wake(one);
  }

  std::optional<Abortion> aborted() {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

  std::optional<Announcement> announced() {
    const std::lock_guard lock(mutex_);
    return announced_;
  }

 private:
  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  static void match(Rank& rank, const Key& key, Mailbox& box) {
    while (!box.offers.empty() && !box.wanted.empty()) {
      box.wanted.front()->offer = std::move(box.offers.front());
      box.wanted.front()->matched.store(true, std::memory_order_release);
      box.offers.pop_front();
      box.wanted.pop_front();
    }
    if (box.offers.empty() && box.wanted.empty()) rank.mailboxes.erase(key);
  }

  static void wake(Rank& rank) {
    ++rank.activity;
    rank.changed.notify_all();
  }

  std::shared_ptr<Nursery> nursery_;
  std::mutex mutex_;
  std::deque<Rank> ranks_;
  std::optional<Abortion> aborted_;
  std::optional<Announcement> announced_;
};

class SendRequest final : public Request {
 public:
  explicit SendRequest(std::shared_ptr<Offer> offer) : offer_(std::move(offer)) {}
  bool test() override { return offer_->copied.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<Offer> offer_;
};

class ReceiveRequest final : public Request {
 public:
  ReceiveRequest(std::shared_ptr<ThreadDomain> domain, std::shared_ptr<Wanted> wanted,
                 Buffer buffer)
      : domain_(std::move(domain)), wanted_(std::move(wanted)), buffer_(std::move(buffer)) {}

  bool test() override {
    if (!wanted_->matched.load(std::memory_order_acquire)) return false;
    const auto offer = std::move(wanted_->offer);
    if (offer->buffer.bytes != buffer_.bytes) {
      throw CommError(fmt::format(
          "rank {} sent {} bytes where {} were expected: the ranks do not call the same operation",
          offer->from, offer->buffer.bytes, buffer_.bytes));
    }
    std::memcpy(buffer_.data, offer->buffer.data, buffer_.bytes);
    offer->copied.store(true, std::memory_order_release);
    domain_->wake(offer->from);
    return true;
  }

 private:
  std::shared_ptr<ThreadDomain> domain_;
  std::shared_ptr<Wanted> wanted_;
  Buffer buffer_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<ThreadDomain> domain, int rank)
      : domain_(std::move(domain)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return domain_->size(); }
  int64_t max_context() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t max_number() const override { return std::numeric_limits<int>::max(); }

  std::unique_ptr<Request> post_send(int to, const Tag& tag, Buffer buffer) override {
    auto offer = std::make_shared<Offer>();
    offer->buffer = std::move(buffer);
    offer->from = rank_;
    domain_->post(to, key(rank_, tag), offer);
    return std::make_unique<SendRequest>(std::move(offer));
  }

  std::unique_ptr<Request> post_recv(int from, const Tag& tag, Buffer buffer) override {
    auto wanted = std::make_shared<Wanted>();
    domain_->post(rank_, key(from, tag), wanted);
    return std::make_unique<ReceiveRequest>(domain_, std::move(wanted), std::move(buffer));
  }

  std::optional<Abortion> aborted() override { return domain_->aborted(); }
  std::optional<Announcement> announced() override { return domain_->announced(); }
  void abort(const std::string& reason) override { domain_->abort(rank_, reason); }
  void announce(std::chrono::milliseconds duration, const std::string& what) override {
    domain_->announce({rank_, Clock::now() + duration, what});
  }

  uint64_t activity() override { return domain_->activity(rank_); }
  void idle(uint64_t seen, Clock::time_point until) override { domain_->idle(rank_, seen, until); }

  std::unique_ptr<Transport> new_domain(int64_t id, const std::vector<int>& members) override {
    Nursery& nursery = *domain_->nursery();
    const std::lock_guard lock(nursery.mutex);
    const auto at = nursery.entries.try_emplace({id, members}).first;
    Nursery::Entry& entry = at->second;
    if (!entry.domain) {
      entry.domain =
          std::make_shared<ThreadDomain>(static_cast<int>(members.size()), domain_->nursery());
    }
    const auto domain = entry.domain;
    if (++entry.arrived == members.size()) nursery.entries.erase(at);
    const auto rank = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<ThreadTransport>(domain, static_cast<int>(rank));
  }

 private:
  static Key key(int from, const Tag& tag) { return {from, tag.channel, tag.context, tag.number}; }

  std::shared_ptr<ThreadDomain> domain_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_transports(int n) {
  SP_EXPECT(n >= 1, "a world of {} ranks: give 1 or more", n);
  const auto domain = std::make_shared<ThreadDomain>(n, std::make_shared<Nursery>());
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < n; ++rank)
    ends.push_back(std::make_unique<ThreadTransport>(domain, rank));
  return ends;
}

}  // namespace shardproof
