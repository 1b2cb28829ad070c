// A scenario: one claim, and the runs that prove it. Data only; read from TOML by scenario_file.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/training_run.h"

namespace shardproof {

enum class RanksAs { kProcesses, kThreads };
const char* ranks_as_name(RanksAs ranks_as);

// What a run is compared with.
enum class Against {
  kSingle,       // the unsharded run of the same global batch
  kDpReplicate,  // DDP over as many data ranks: dp_replicate=N where this run has fsdp x
                 // dp_replicate = N
};

struct LayoutRun {
  DistributedConfig config;
  int64_t steps = 0;
  bool update = true;    // see TrainingSpec
  std::set<Kind> kinds;  // what is compared; empty: everything
  RanksAs ranks_as = RanksAs::kProcesses;

  std::string name() const {
    return config.layout() + (config.enable_sequence_parallel ? "+sp" : "");
  }
  int64_t ranks() const { return config.mesh().world_size(); }
  int64_t data_size() const { return config.dp_replicate_size * config.fsdp_size; }
};

// A fault to plant in every run (not in what it is compared with), to see it caught; see faults.h.
struct FaultSpec {
  std::string kind;  // "drop_all_reduce", "shift_rows", "count_tokens_over_world"; "" = none
  std::string at;    // module or parameter
  int64_t by = 0;    // rows
};

// Layouts that generate, instead of training: compared with generation.json of the model.
struct GenerationSpec {
  std::vector<at::ScalarType> dtypes;  // float32, bfloat16
  int64_t tokens = 0;                  // new ones of a prompt; 0: as many as the reference has
};

struct Scenario {
  std::string name;  // stem of the file
  std::filesystem::path file;
  std::string claim;
  std::vector<std::string> tags;
  std::vector<std::filesystem::path> models;  // directories
  TrainingSpec training;                      // its model's directory is set for each of `models`
  // Of every layout: what goes before the model's own plans, by key ("tp_plan").
  std::map<std::string, std::optional<Plan>> plans;
  std::vector<LayoutRun> layouts;
  std::vector<Against> against = {Against::kSingle};
  // The types in which each layout's first step is judged against the float64 truth too.
  std::vector<at::ScalarType> level2;
  std::optional<GenerationSpec> generation;
  bool reference = false;  // also compare the unsharded run with what transformers computed
  std::vector<std::string> allow_zero;
  FaultSpec fault;
};

// The name under which a model's runs are reported: the last part of its path.
std::string model_name(const std::filesystem::path& directory);

}  // namespace shardproof
