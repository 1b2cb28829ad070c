// The commands of the program: one file each, and a table of them in program.cpp.
#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "harness/program_world.h"
#include "models/family.h"

namespace shardproof {

// Runs on every rank, and returns the same exit status on all: 0 everything held, 1 a check failed.
// Throws InputError, on all ranks alike, for a wrong call or input.
using CommandBody = std::function<int(const ProgramWorld& world)>;

// Adds the command's own options to `app`, and returns what runs once they are parsed, with the
// model families that the program knows.
using Command = CommandBody (*)(CLI::App& app, const FamilyRegistry& families);

CommandBody command_run(CLI::App& app, const FamilyRegistry& families);
CommandBody command_list(CLI::App& app, const FamilyRegistry& families);
CommandBody command_plan(CLI::App& app, const FamilyRegistry& families);
CommandBody command_generate(CLI::App& app, const FamilyRegistry& families);

}  // namespace shardproof
