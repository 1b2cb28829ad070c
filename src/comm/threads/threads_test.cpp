#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "comm/contract_cases.h"
#include "comm/self.h"
#include "comm/threads/run_ranks.h"

namespace shardproof {

namespace {

using namespace std::chrono_literals;

const Site kSite{"", "x", "forward"};

class ThreadsContract : public testing::TestWithParam<std::tuple<ContractCase, int>> {};

TEST_P(ThreadsContract, Holds) {
  const auto& [contract, ranks] = GetParam();
  run_ranks(ranks, contract.run, {.deadline = 60s});
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadsContract,
                         testing::Combine(testing::ValuesIn(contract_cases()),
                                          testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

class SelfContract : public testing::TestWithParam<ContractCase> {};

TEST_P(SelfContract, Holds) { GetParam().run(make_self_communicator()); }

INSTANTIATE_TEST_SUITE_P(Self, SelfContract, testing::ValuesIn(contract_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(RunRanks, RethrowsTheFirstFailureWithItsType) {
  std::vector<std::string> woken(3);
  const auto body = [&](const CommPtr& world) {
    if (world->rank() == 1) throw std::out_of_range("index 7 of 5");
    try {
      world->barrier(kSite).wait();
    } catch (const AbortedError& error) {
      woken[static_cast<size_t>(world->rank())] = error.what();
      throw;
    }
  };

  EXPECT_THROW(run_ranks(3, body), std::out_of_range);
  EXPECT_EQ(woken[0], "aborted by rank 1: index 7 of 5");
  EXPECT_EQ(woken[2], "aborted by rank 1: index 7 of 5");
}

TEST(RunRanks, TellsOfRanksThatDoNotEnd) {
  std::string told;
  const auto body = [](const CommPtr& world) {
    if (world->rank() == 0) throw InputError("no such file");
    std::this_thread::sleep_for(300ms);
  };
  const RunRanksOptions options{.grace = 50ms,
                                .stuck = [&](const std::string& message) { told = message; }};

  EXPECT_THROW(run_ranks(2, body, options), InputError);
  EXPECT_EQ(told, "ranks 1 still run 50 ms after rank 0 failed: no such file");
}

TEST(RunRanks, GivesEachRankOneThreadAndLeavesTheCallerItsOwn) {
  const int before = at::get_num_threads();
  run_ranks(2, [](const CommPtr&) { EXPECT_EQ(at::get_num_threads(), 1); });
  EXPECT_EQ(at::get_num_threads(), before);
}

}  // namespace

}  // namespace shardproof
