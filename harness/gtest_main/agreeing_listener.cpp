#include "harness/gtest_main/agreeing_listener.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "harness/gtest_main/test_world.h"

namespace shardproof {
namespace {

constexpr int kLengthTag = 1;
constexpr int kTextTag = 2;
constexpr int kVerdictTag = 3;
const Site kSite{"", "verdict", "agree"};

AgreeingListener* g_listener = nullptr;  // the one of this program, for test_world()

void send_text(Communicator& comm, int to, const std::string& text) {
  const at::Tensor length = at::tensor({static_cast<int64_t>(text.size())});
  at::Tensor bytes = at::empty({length.item<int64_t>()}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<uint8_t>());
  comm.send(length, to, kLengthTag, kSite).wait();
  comm.send(bytes, to, kTextTag, kSite).wait();
}

std::string receive_text(Communicator& comm, int from) {
  const at::Tensor length = at::zeros({1}, at::kLong);
  comm.recv(length, from, kLengthTag, kSite).wait();
  const at::Tensor bytes = at::empty({length.item<int64_t>()}, at::kByte);
  comm.recv(bytes, from, kTextTag, kSite).wait();
  const auto* data = bytes.const_data_ptr<uint8_t>();
  return {data, data + bytes.numel()};
}

}  // namespace

CommPtr test_world() {
  SP_EXPECT(g_listener != nullptr && g_listener->current(),
            "test_world() was called outside a test");
  return g_listener->current();
}

std::chrono::milliseconds test_deadline() {
  const char* text = std::getenv("SHARDPROOF_TEST_DEADLINE");
  if (text == nullptr || *text == '\0') return std::chrono::seconds(120);
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  SP_VALIDATE(*end == '\0' && seconds > 0,
              "SHARDPROOF_TEST_DEADLINE is '{}': it must be a number of seconds above 0", text);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

AgreeingListener::AgreeingListener(const ProgramWorld& world, Options options)
    : world_(world), options_(std::move(options)) {
  g_listener = this;
}

AgreeingListener::~AgreeingListener() { g_listener = nullptr; }

void AgreeingListener::OnTestStart(const testing::TestInfo& test) {
  failures_.clear();
  world_.control().set_deadline(options_.deadline);
  try {
    current_ = world_.fresh_domain("test");
  } catch (const CommError& error) {
    world_.break_off(fmt::format("{}.{} could not start: {}", test.test_suite_name(), test.name(),
                                 error.what()));
  }
  current_->set_deadline(options_.deadline);
  in_test_ = true;
}

// GoogleTest calls this with a lock held: nothing here may block or assert.
void AgreeingListener::OnTestPartResult(const testing::TestPartResult& result) {
  if (!in_test_ || !result.failed()) return;
  failures_.push_back({result.file_name() != nullptr ? result.file_name() : "unknown file",
                       std::max(result.line_number(), 0), result.message()});
  // This rank leaves the test, or may: the others must not wait for it.
  if (result.fatally_failed()) current_->abort(result.summary());
}

// One that failed has most likely seen its own deadline pass already: it does not wait as long
// again.
std::chrono::milliseconds AgreeingListener::patience() const {
  using std::chrono::milliseconds;
  if (failures_.empty()) return options_.deadline;
  return std::max(options_.deadline / 4, milliseconds(1000));
}

void AgreeingListener::OnTestEnd(const testing::TestInfo& test) {
  in_test_ = false;
  world_.control().set_deadline(patience());
  if (world_.rank() == 0) {
    receive_failures(test);
  } else {
    send_failures();
  }
  world_.control().set_deadline(options_.deadline);
  current_.reset();
}

void AgreeingListener::receive_failures(const testing::TestInfo& test) {
  Communicator& control = world_.control();
  std::vector<int> missing;
  std::vector<std::pair<int, Failure>> theirs;
  for (int rank = 1; rank < world_.size(); ++rank) {
    try {
      for (const auto& item : nlohmann::json::parse(receive_text(control, rank)))
        theirs.push_back({rank, {item.at("file"), item.at("line"), item.at("message")}});
    } catch (const CommError&) {
      missing.push_back(rank);
      control.set_deadline(std::chrono::seconds(1));  // the others had as long as this one
    }
  }
  if (!missing.empty()) end_run(test, missing);
  for (const auto& [rank, failure] : theirs)
    ADD_FAILURE_AT(failure.file.c_str(), failure.line)
        << "rank " << rank << ": " << failure.message;
  const at::Tensor verdict = at::tensor({static_cast<int64_t>(test.result()->Failed())});
  for (int rank = 1; rank < world_.size(); ++rank)
    control.send(verdict, rank, kVerdictTag, kSite).wait();
}

void AgreeingListener::send_failures() {
  Communicator& control = world_.control();
  nlohmann::json list = nlohmann::json::array();
  for (const Failure& failure : failures_)
    list.push_back({{"file", failure.file}, {"line", failure.line}, {"message", failure.message}});
  const at::Tensor verdict = at::zeros({1}, at::kLong);
  try {
    send_text(control, 0, list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    // Rank 0 gives up first where another rank is missing, and names it.
    control.set_deadline(2 * options_.deadline + std::chrono::seconds(world_.size() + 2));
    control.recv(verdict, 0, kVerdictTag, kSite).wait();
  } catch (const CommError& error) {
    world_.break_off(
        fmt::format("rank {}: rank 0 gave no verdict: {}", world_.rank(), error.what()));
  }
  if (verdict.item<int64_t>() != 0 && failures_.empty()) ADD_FAILURE() << "failed on another rank";
}

void AgreeingListener::end_run(const testing::TestInfo& test, const std::vector<int>& missing) {
  const std::string reason = fmt::format(
      "{}.{}: rank {} did not arrive at the end of the test within {} s", test.test_suite_name(),
      test.name(), fmt::join(missing, ", "), static_cast<double>(options_.deadline.count()) / 1000);
  if (options_.before_break_off) options_.before_break_off(reason);
  world_.break_off(reason);
}

}  // namespace shardproof
