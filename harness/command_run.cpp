#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <iostream>

#include "base/check.h"
#include "harness/command.h"
#include "harness/locations.h"
#include "harness/report_text.h"
#include "harness/scenario_file.h"
#include "harness/session.h"

namespace shardproof {
namespace {

struct Options {
  std::vector<std::string> scenarios;
  std::string tag = "ci";
  std::string out;
  std::string filter;
  std::string ranks_as;
  int64_t ranks = 0;
  bool json = false;
  bool allow_skips = false;
  bool list = false;
  std::string command;
  FamilyRegistry families;
};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string now() {
  const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
  return text.data();
}

std::vector<Scenario> read_scenarios(const Options& options) {
  std::optional<RanksAs> ranks_as;
  if (options.ranks_as == "threads") ranks_as = RanksAs::kThreads;
  if (options.ranks_as == "processes") ranks_as = RanksAs::kProcesses;
  const std::filesystem::path folder = project_folder() / "scenarios";
  const bool named = !options.scenarios.empty();
  std::vector<Scenario> scenarios;
  for (const auto& file :
       named ? find_scenarios(folder, options.scenarios) : all_scenarios(folder)) {
    if (!named && !has_tag(file, options.tag)) continue;
    Scenario scenario = read_scenario(file, ranks_as);
    scenario.training.model.families = options.families;
    for (const std::filesystem::path& model : scenario.models) {
      scenario.training.model.directory = model;
      check_model(scenario.training.model);
      for (const LayoutRun& run : scenario.layouts)
        check_plans(scenario.training.model, run.config);
    }
    scenarios.push_back(std::move(scenario));
  }
  SP_VALIDATE(!scenarios.empty(), "no scenario in {} has the tag '{}'", folder.string(),
              options.tag);
  for (size_t i = 0; i < scenarios.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      SP_VALIDATE(scenarios[i].name != scenarios[j].name,
                  "the scenario '{}' was named twice ({} and {})", scenarios[i].name,
                  scenarios[j].file.string(), scenarios[i].file.string());
  return scenarios;
}

int run(const ProgramWorld& world, const Options& options) {
  std::vector<Scenario> scenarios;
  world.agreed([&] {
    SP_VALIDATE(options.ranks == 0 || options.ranks_as == "threads",
                "-n {} goes with --ranks-as threads; the number of processes is mpirun's -n",
                options.ranks);
    scenarios = read_scenarios(options);
  });
  const bool first = world.rank() == 0;
  if (options.list) {
    for (const std::string& name : test_names(scenarios, options.filter))
      if (first) std::cout << name << '\n';
    return 0;
  }
  SessionOptions session;
  session.out = options.out.empty() ? results_folder() : std::filesystem::path(options.out);
  session.filter = options.filter;
  session.most_threads = options.ranks;
  session.quiet = options.json;
  session.allow_skips = options.allow_skips;
  Results results;
  results.command = options.command;
  results.host = host_name();
  results.started = now();
  results.ranks = world.size();
  results = run_session(world, scenarios, session, std::move(results));
  if (first)
    std::cout << (options.json ? to_json(results) : summary_table(results, options.allow_skips));
  return results.exit_status;
}

}  // namespace

CommandBody command_run(CLI::App& app, const FamilyRegistry& families) {
  auto options = std::make_shared<Options>();
  options->families = families;
  app.add_option("scenarios", options->scenarios,
                 "stems or paths of scenarios; none: those with the tag");
  app.add_option("--tag", options->tag, "which scenarios run where none is named")
      ->capture_default_str();
  app.add_option("--out", options->out, "folder for results.json and junit.xml [reports/out]");
  app.add_option("--filter", options->filter, "glob over scenario.model/layout");
  app.add_option("--ranks-as", options->ranks_as, "what ranks are, whatever scenarios say")
      ->check(CLI::IsMember({"processes", "threads"}));
  app.add_option("-n,--ranks", options->ranks, "with --ranks-as threads: the most ranks of a run")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  app.add_flag("--json", options->json, "results as JSON on stdout, and nothing else");
  app.add_flag("--allow-skips", options->allow_skips,
               "a run that needs more ranks than there are is no failure");
  app.add_flag("--list", options->list, "the names of the tests, without running them");
  return [options, &app](const ProgramWorld& world) {
    options->command = "shardproof run";
    for (const std::string& name : options->scenarios) options->command += " " + name;
    for (const CLI::Option* option : app.get_options())
      if (option->count() > 0 && !option->get_positional())
        options->command += " " + option->get_name() +
                            (option->get_type_size() > 0
                                 ? " " + fmt::format("{}", fmt::join(option->results(), " "))
                                 : "");
    return run(world, *options);
  };
}

}  // namespace shardproof
