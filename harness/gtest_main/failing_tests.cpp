// Tests that fail on purpose, run by check_failing_tests: what is tested is how their failure is
// told.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "harness/gtest_main/test_world.h"

namespace shardproof {
namespace {

void meet() { test_world()->barrier({"", "meeting", "test"}).wait(); }

TEST(Failing, ExpectationOnRank1) {
  EXPECT_NE(test_world()->rank(), 1) << "told from rank 1";
  meet();
}

TEST(Failing, AssertionOnRank1) {
  ASSERT_NE(test_world()->rank(), 1) << "the others wait in a barrier";
  meet();
}

TEST(Failing, ThrowOnRank1) {
  if (test_world()->rank() == 1) throw std::runtime_error("thrown on purpose");
  meet();
}

// Comes after the failing ones: the run must go on, with a communicator that works.
TEST(Passing, AfterTheFailures) { meet(); }

TEST(Silent, Rank1Sleeps) {
  if (test_world()->rank() == 1) std::this_thread::sleep_for(std::chrono::minutes(5));
}

TEST(Silent, Rank0Sleeps) {
  if (test_world()->rank() == 0) std::this_thread::sleep_for(std::chrono::minutes(5));
}

TEST(Silent, Rank1SleepsWhileOthersWait) {
  if (test_world()->rank() == 1) std::this_thread::sleep_for(std::chrono::minutes(5));
  meet();
}

}  // namespace
}  // namespace shardproof
