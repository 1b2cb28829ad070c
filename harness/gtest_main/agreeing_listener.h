// Makes the ranks of a GoogleTest program agree on each test.
//
// After each test every rank tells rank 0 its failures, over a communicator that tests never get.
// Rank 0 records them, with rank, file and line, in its own result, and answers with the verdict: a
// test that failed on one rank has failed on all. A fatal failure or an exception on one rank
// aborts the test's communicator, so that the others do not wait for it. A rank that does not
// arrive before the deadline ends the run: rank 0 names it, and all are ended with status 3.
//
// Append it last: listeners hear of the end of a test in reverse order, and the printer must not
// report before the verdict is known.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

#include "harness/program_world.h"

namespace shardproof {

// SHARDPROOF_TEST_DEADLINE in seconds, 120 where it is not set. Throws InputError for what is no
// number.
std::chrono::milliseconds test_deadline();

class AgreeingListener final : public testing::EmptyTestEventListener {
 public:
  struct Options {
    std::chrono::milliseconds deadline = test_deadline();
    // Called on rank 0 with the reason before the run is ended: the place to write reports.
    std::function<void(const std::string&)> before_break_off = {};
  };

  AgreeingListener(const ProgramWorld& world, Options options);
  ~AgreeingListener() override;

  // The communicator of the running test.
  const CommPtr& current() const { return current_; }

  void OnTestStart(const testing::TestInfo&) override;
  void OnTestPartResult(const testing::TestPartResult& result) override;
  void OnTestEnd(const testing::TestInfo& test) override;

 private:
  struct Failure {
    std::string file;
    int line = 0;
    std::string message;
  };

  void receive_failures(const testing::TestInfo& test);
  void send_failures();
  std::chrono::milliseconds patience() const;
  [[noreturn]] void end_run(const testing::TestInfo& test, const std::vector<int>& missing);

  const ProgramWorld& world_;
  Options options_;
  CommPtr current_;
  std::vector<Failure> failures_;  // of the running test, on this rank
  bool in_test_ = false;
};

}  // namespace shardproof
