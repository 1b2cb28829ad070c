#include "comm/operation.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

namespace shardproof {

Operation::Operation(std::string name, std::string communicator,
                     std::shared_ptr<const std::vector<int>> members, Site site)
    : name_(std::move(name)),
      communicator_(std::move(communicator)),
      members_(std::move(members)),
      site_(std::move(site)) {}

void Operation::add_send(int peer, std::unique_ptr<Request> request) {
  sends_.push_back({peer, std::move(request)});
}

void Operation::add_receive(int peer, std::unique_ptr<Request> request) {
  receives_.push_back({peer, std::move(request)});
}

void Operation::then(After after, Stage stage) { stages_.push_back({after, std::move(stage)}); }

void Operation::then_first(After after, Stage stage) {
  stages_.push_front({after, std::move(stage)});
}

void Operation::test(std::vector<Pending>& pending) {
  // A test that throws leaves gaps behind.
  std::erase_if(pending, [](const Pending& one) { return !one.request || one.request->test(); });
}

bool Operation::advance() {
  while (!done_) {
    test(receives_);
    test(sends_);
    if (!receives_.empty()) return false;
    if (stages_.empty()) {
      if (!sends_.empty()) return false;
      done_ = true;
    } else {
      if (stages_.front().after == After::kAll && !sends_.empty()) return false;
      const Stage stage = std::move(stages_.front().stage);
      stages_.pop_front();
      // Below autograd: what a collective writes is no operation of the graph, nor a new version.
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      stage(*this);
    }
  }
  return true;
}

std::string Operation::describe() const {
  std::string where = site_.module.empty() ? "" : fmt::format("module {}, ", site_.module);
  where += fmt::format("value {}, phase {}", site_.value.empty() ? "-" : site_.value,
                       site_.phase.empty() ? "-" : site_.phase);
  return fmt::format("{} on '{}' ({})", name_, communicator_, where);
}

std::string Operation::missing() const {
  std::set<int> peers;
  for (const Pending& message : receives_.empty() ? sends_ : receives_) peers.insert(message.peer);
  std::vector<std::string> names;
  for (const int peer : peers) {
    const int in_domain = (*members_)[static_cast<size_t>(peer)];
    names.push_back(peer == in_domain ? fmt::format("{}", peer)
                                      : fmt::format("{} (rank {} of the domain)", peer, in_domain));
  }
  return fmt::format("{} {}", names.size() == 1 ? "rank" : "ranks", fmt::join(names, ", "));
}

}  // namespace shardproof
