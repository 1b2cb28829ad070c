#include "harness/session.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "base/check.h"
#include "harness/faults.h"
#include "harness/generation_check.h"
#include "harness/gtest_main/agreeing_listener.h"
#include "harness/level2_check.h"
#include "harness/reference_check.h"
#include "harness/report_text.h"
#include "harness/session_case.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Session {
 public:
  Session(const ProgramWorld& world, const SessionOptions& options, Results results)
      : world_(world),
        options_(options),
        results_(std::move(results)),
        begin_(Clock::now()),
        thread_oracles_(options.out / "oracles" / "threads", world.rank() == 0),
        process_oracles_(options.out / "oracles" / "processes", world.rank() == 0) {}

  void run_case(const Case& one, const CommPtr& world);
  void end_case(const testing::TestInfo& test);
  // `cases`: how many tests there should have been.
  Results finish(size_t cases);
  // Writes what there is, for a run that is about to be ended.
  void give_up(const std::string& reason);

 private:
  bool first() const { return world_.rank() == 0; }
  Group blank(const Case& one) const;
  void add_groups(const Case& one, std::vector<LayoutOutcome> outcomes, double seconds);
  std::vector<LayoutOutcome> check(const Case& one, Launcher& launcher, OracleStore& oracles);
  std::vector<LayoutOutcome> check_run(const Case& one, Launcher& launcher, OracleStore& oracles,
                                       const RunSeams& seams);
  std::vector<LayoutOutcome> check_reference(const Case& one, Launcher& launcher);
  void write_results();

  const ProgramWorld& world_;
  const SessionOptions& options_;
  Results results_;
  Clock::time_point begin_;
  OracleStore thread_oracles_, process_oracles_;
  GenerationOracles thread_generated_, process_generated_;
  const Case* current_ = nullptr;
  size_t printed_ = 0;  // groups
  size_t ended_ = 0;    // tests
};

Group Session::blank(const Case& one) const {
  return {.scenario = one.scenario->name,
          .model = model_name(one.model),
          .layout = one.layout(),
          .dtype = one.dtype(),
          .against = one.run != nullptr ? "single" : "transformers",
          .ranks_as = ranks_as_name(one.ranks_as()),
          .message = {},
          .rows = {}};
}

std::vector<LayoutOutcome> Session::check_reference(const Case& one, Launcher& launcher) {
  std::vector<LayoutOutcome> outcomes(2);
  ModelSource source = one.scenario->training.model;
  source.directory = one.model;
  launcher.run(1, "the comparison with transformers", [&](const CommPtr& self) {
    outcomes[0] = {"transformers", check_reference_float64(self, source)};
    outcomes[1] = {"transformers float32", check_reference_float32(self, source)};
  });
  return outcomes;
}

std::vector<LayoutOutcome> Session::check_run(const Case& one, Launcher& launcher,
                                              OracleStore& oracles, const RunSeams& seams) {
  if (one.generated)
    return check_generation(
        launcher, one.ranks_as() == RanksAs::kThreads ? thread_generated_ : process_generated_,
        *one.scenario, one.model, *one.run, *one.generated, seams);
  if (one.level2)
    return {
        check_level2(launcher, oracles, *one.scenario, one.model, *one.run, *one.level2, seams)};
  return check_layout(launcher, oracles, *one.scenario, one.model, *one.run, seams);
}

std::vector<LayoutOutcome> Session::check(const Case& one, Launcher& launcher,
                                          OracleStore& oracles) {
  if (one.run == nullptr) return check_reference(one, launcher);
  const Fault fault = planted(one.scenario->fault);
  std::vector<LayoutOutcome> outcomes = check_run(one, launcher, oracles, fault.seams);
  if (first()) check_met(one.scenario->fault, fault);  // the first rank takes part in every run
  return outcomes;
}

void Session::add_groups(const Case& one, std::vector<LayoutOutcome> outcomes, double seconds) {
  if (outcomes.empty()) {
    results_.groups.push_back(blank(one));
    ADD_FAILURE() << group_line(results_.groups.back());
  }
  for (LayoutOutcome& outcome : outcomes) {
    Group group = blank(one);
    group.against = outcome.against;
    group.status = judge(outcome.rows);
    group.rows = std::move(outcome.rows);
    group.seconds = seconds / static_cast<double>(outcomes.size());
    results_.groups.push_back(std::move(group));
    if (results_.groups.back().status != GroupStatus::kPassed)
      ADD_FAILURE() << group_line(results_.groups.back());
  }
}

void Session::run_case(const Case& one, const CommPtr& world) {
  current_ = &one;
  const bool threads = one.ranks_as() == RanksAs::kThreads;
  const int64_t most = threads ? options_.most_threads : world->size();
  if (most > 0 && one.ranks() > most) {
    if (first()) {
      Group group = blank(one);
      group.status = GroupStatus::kSkipped;
      group.message = fmt::format("needs {} ranks, there are {}", one.ranks(), most);
      results_.groups.push_back(std::move(group));
    }
    GTEST_SKIP() << one.name() << " needs " << one.ranks() << " ranks, there are " << most;
  }
  const auto begin = Clock::now();
  std::vector<LayoutOutcome> outcomes;
  try {
    if (threads) {
      on_first_rank(*world, one.name(), [&] {
        const auto launcher =
            make_thread_launcher(options_.most_threads, [&](const std::string& why) {
              give_up(why);
              world_.break_off(why);
            });
        outcomes = check(one, *launcher, thread_oracles_);
      });
    } else {
      outcomes = check(one, *make_process_launcher(world), process_oracles_);
    }
  } catch (const c10::Error& error) {  // without the backtrace
    throw std::runtime_error(error.what_without_backtrace());
  }
  if (first()) add_groups(one, std::move(outcomes), seconds_since(begin));
}

// Whatever failed, on whichever rank, the groups of the test must say so.
void Session::end_case(const testing::TestInfo& test) {
  ++ended_;
  if (!first()) return;
  const testing::TestResult& result = *test.result();
  if (result.Failed()) {
    std::string why;
    for (int i = 0; i < result.total_part_count() && why.empty(); ++i)
      if (result.GetTestPartResult(i).failed()) why = result.GetTestPartResult(i).message();
    bool told = false;
    for (size_t i = printed_; i < results_.groups.size(); ++i)
      told = told || results_.groups[i].status != GroupStatus::kPassed;
    if (!told) {
      Group group = blank(*current_);
      group.against = "-";
      group.status = GroupStatus::kBroken;
      group.message = why;
      results_.groups.push_back(std::move(group));
    }
  }
  for (; printed_ < results_.groups.size(); ++printed_)
    if (!options_.quiet) std::cout << group_line(results_.groups[printed_]) << '\n' << std::flush;
}

void Session::write_results() {
  results_.seconds = seconds_since(begin_);
  write_text_file(options_.out / "results.json", to_json(results_));
}

void Session::give_up(const std::string& reason) {
  results_.exit_status = 3;
  results_.message = reason;
  write_results();
}

Results Session::finish(size_t cases) {
  int64_t own = first() ? results_.status(options_.allow_skips) : 0;
  if (ended_ != cases) {
    own = std::max<int64_t>(own, 1);
    results_.message = fmt::format("{} tests ran, there are {}", ended_, cases);
  }
  results_.exit_status = static_cast<int>(world_.agreed_max(own));
  if (first()) write_results();
  return std::move(results_);
}

class CaseTest final : public testing::Test {
 public:
  explicit CaseTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

class EndListener final : public testing::EmptyTestEventListener {
 public:
  explicit EndListener(Session& session) : session_(session) {}
  void OnTestEnd(const testing::TestInfo& test) override { session_.end_case(test); }

 private:
  Session& session_;
};

// With the options that this program uses: none of GoogleTest's own are read from the command line.
void init_googletest(const ProgramWorld& world, const std::filesystem::path& junit) {
  std::vector<std::string> arguments = {"shardproof"};
  if (world.rank() == 0) arguments.push_back("--gtest_output=xml:" + junit.string());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(arguments.size());
  testing::InitGoogleTest(&count, pointers.data());
  // Nor from the environment: every test runs, once, in order.
  testing::GTEST_FLAG(filter) = "*";
  testing::GTEST_FLAG(repeat) = 1;
  testing::GTEST_FLAG(shuffle) = false;
  testing::GTEST_FLAG(also_run_disabled_tests) = true;
  unsetenv("GTEST_TOTAL_SHARDS");
  unsetenv("GTEST_SHARD_INDEX");
}

}  // namespace

std::vector<std::string> test_names(const std::vector<Scenario>& scenarios,
                                    const std::string& filter) {
  std::vector<std::string> names;
  for (const Case& one : all_cases(scenarios, filter)) names.push_back(one.name());
  return names;
}

Results run_session(const ProgramWorld& world, const std::vector<Scenario>& scenarios,
                    const SessionOptions& options, Results results) {
  const std::vector<Case> cases = all_cases(scenarios, options.filter);
  SP_VALIDATE(!cases.empty(),
              "the filter '{}' lets none of the tests of {} scenarios through; see --list",
              options.filter, scenarios.size());
  world.agreed([&] {
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    SP_VALIDATE(!error, "{}: {}", options.out.string(), error.message());
  });
  const std::filesystem::path junit = options.out / "junit.tmp.xml";
  init_googletest(world, junit);
  Session session(world, options, std::move(results));
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  if (world.rank() != 0) delete listeners.Release(listeners.default_xml_generator());
  EndListener end(session);
  AgreeingListener agreeing(
      world, {.before_break_off = [&](const std::string& why) { session.give_up(why); }});
  listeners.Append(&end);  // hears of the end after the ranks have agreed
  listeners.Append(&agreeing);

  for (const Case& one : cases)
    testing::RegisterTest(one.scenario->name.c_str(), one.test().c_str(), nullptr, nullptr,
                          __FILE__, __LINE__, [&session, &agreeing, &one]() -> testing::Test* {
                            return new CaseTest([&] { session.run_case(one, agreeing.current()); });
                          });
  [[maybe_unused]] const int ignored = RUN_ALL_TESTS();  // the groups know more
  listeners.Release(&agreeing);
  listeners.Release(&end);
  if (world.rank() == 0) std::filesystem::rename(junit, options.out / "junit.xml");
  return session.finish(cases.size());
}

}  // namespace shardproof
