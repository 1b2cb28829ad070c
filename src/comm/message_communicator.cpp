#include "comm/message_communicator.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace shardproof {

namespace {

class Started final : public Work::State {
 public:
  Started(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation)
      : engine_(std::move(engine)), operation_(std::move(operation)) {}
  void wait() override { engine_->wait(*operation_); }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Operation> operation_;
};

std::vector<int> iota(int count) {
  std::vector<int> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

MessageCommunicator::MessageCommunicator(std::unique_ptr<Transport> transport, std::string name)
    : engine_(std::make_shared<Engine>(std::move(transport), std::make_shared<int64_t>(1))),
      members_(std::make_shared<std::vector<int>>(iota(engine_->transport().size()))),
      rank_(engine_->transport().rank()),
      context_(0),
      name_(std::move(name)) {}

MessageCommunicator::MessageCommunicator(std::shared_ptr<Engine> engine, std::vector<int> members,
                                         int rank, int64_t context, std::string name)
    : engine_(std::move(engine)),
      members_(std::make_shared<std::vector<int>>(std::move(members))),
      rank_(rank),
      context_(context),
      name_(std::move(name)) {}

std::shared_ptr<Operation> MessageCommunicator::begin(const char* name, const Site& site) {
  engine_->check_aborted();
  return std::make_shared<Operation>(name, name_, members_, site);
}

Link MessageCommunicator::next_link() {
  const int64_t numbers = engine_->transport().max_number() + 1;
  return {&engine_->transport(), members_, rank_,
          Tag{Channel::kOperation, context_, sequence_++ % numbers}};
}

Link MessageCommunicator::user_link(int tag) const {
  SP_EXPECT(tag >= 0 && tag <= engine_->transport().max_number(),
            "message tag {} on '{}': give one from 0 to {}", tag, name_,
            engine_->transport().max_number());
  return {&engine_->transport(), members_, rank_, Tag{Channel::kUser, context_, tag}};
}

Work MessageCommunicator::started(const std::shared_ptr<Operation>& operation) {
  engine_->start(operation);
  if (operation->done()) return Work();
  return Work(std::make_shared<Started>(engine_, operation));
}

void MessageCommunicator::expect_rank(const char* role, int rank) const {
  SP_EXPECT(rank >= 0 && rank < size(), "{} {} of '{}': it has ranks 0 to {}", role, rank, name_,
            size() - 1);
}

std::vector<std::vector<int64_t>> MessageCommunicator::exchange_values(std::vector<int64_t> values,
                                                                       const char* what) {
  const auto width = static_cast<int64_t>(values.size());
  const at::Tensor mine = at::empty({width}, at::kLong);
  std::copy(values.begin(), values.end(), mine.data_ptr<int64_t>());
  const at::Tensor all = at::empty({width * size()}, at::kLong);
  const std::vector<int64_t> counts(static_cast<size_t>(size()), width);
  all_gather(all, mine, counts, Site{"", what, "setup"}).wait();
  std::vector<std::vector<int64_t>> result;
  for (int rank = 0; rank < size(); ++rank) {
    const int64_t* begin = all.data_ptr<int64_t>() + rank * width;
    result.emplace_back(begin, begin + width);
  }
  return result;
}

CommPtr MessageCommunicator::split(int color, int key, std::string name) {
  const auto asked = exchange_values({color, key, engine_->next_context}, "split");
  int64_t context = 0;
  std::map<int64_t, std::vector<std::tuple<int64_t, int>>> groups;  // color -> (key, rank)
  for (int rank = 0; rank < size(); ++rank) {
    const auto& one = asked[static_cast<size_t>(rank)];
    if (one[0] >= 0) groups[one[0]].emplace_back(one[1], rank);
    context = std::max(context, one[2]);
  }
  // Groups of one split share no rank, so they can share the number; it is new to all their ranks.
  SP_EXPECT(
      context <= engine_->transport().max_context(),
      "'{}' was split too often: {} communicators in one domain are the most; make a new domain",
      name_, engine_->transport().max_context());
  engine_->next_context = context + 1;
  if (color < 0) return nullptr;

  auto& group = groups.at(color);
  std::sort(group.begin(), group.end());
  std::vector<int> members;
  int rank_in_group = 0;
  for (const auto& [unused, rank] : group) {
    if (rank == rank_) rank_in_group = static_cast<int>(members.size());
    members.push_back((*members_)[static_cast<size_t>(rank)]);
  }
  return CommPtr(new MessageCommunicator(engine_, std::move(members), rank_in_group, context,
                                         std::move(name)));
}

CommPtr MessageCommunicator::new_domain(std::string name) {
  int64_t id = 0;
  for (const auto& asked : exchange_values({*engine_->next_domain}, "new_domain")) {
    id = std::max(id, asked[0]);
  }
  *engine_->next_domain = id + 1;
  auto engine = std::make_shared<Engine>(engine_->transport().new_domain(id, *members_),
                                         engine_->next_domain);
  engine->set_deadline(engine_->deadline());
  return CommPtr(
      new MessageCommunicator(std::move(engine), iota(size()), rank_, 0, std::move(name)));
}

void MessageCommunicator::abort(const std::string& reason) { engine_->transport().abort(reason); }

void MessageCommunicator::announce(std::chrono::milliseconds duration, const std::string& what) {
  engine_->transport().announce(duration, what);
}

void MessageCommunicator::set_deadline(std::chrono::milliseconds deadline) {
  engine_->set_deadline(deadline);
}

}  // namespace shardproof
