#include "harness/program.h"

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>

#include "base/error.h"
#include "harness/command.h"

namespace shardproof {
namespace {

struct Entry {
  const char* name;
  const char* help;
  Command command;
};

constexpr std::array kCommands = {
    Entry{"run", "run scenarios, compare, write results", command_run},
    Entry{"list", "scenarios, models, styles", command_list},
    Entry{"plan", "check a plan against a model and a layout of any size", command_plan},
    Entry{"generate", "continue prompts with a checkpoint, on any layout", command_generate},
};

int run_program(int argc, char** argv, const FamilyRegistry& families, const ProgramWorld& world) {
  CLI::App app("Proves that a sharded transformer computes what the unsharded one computes.",
               "shardproof");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  for (const Entry& entry : kCommands) {
    CLI::App* sub = app.add_subcommand(entry.name, entry.help);
    bodies.emplace_back(sub, entry.command(*sub, families));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help
    if (world.rank() == 0) app.exit(error);
    return asked ? 0 : 2;
  }
  for (const auto& [sub, body] : bodies)
    if (sub->parsed()) return body(world);
  return 2;
}

}  // namespace

int shardproof_main(int argc, char** argv, const FamilyRegistry& families) {
  ProgramWorld world(argc, argv);
  try {
    int status = 2;
    try {
      status = run_program(argc, argv, families, world);
    } catch (const InputError& error) {
      if (world.rank() == 0) std::cerr << "shardproof: " << error.what() << '\n';
    }
    std::cout.flush();
    return static_cast<int>(world.agreed_max(status));
  } catch (const std::exception& error) {
    world.break_off(error.what());
  }
}

}  // namespace shardproof
