// Whether a plan fits into a given memory, and which layouts of a number of ranks do. Pure.
#pragma once

#include "analysis/memory.h"
#include "parallel/distributed_config.h"

namespace shardproof {

// "40GiB", "80 GB", "512MiB", "1e9" or "1000000" (bytes). Throws InputError naming the text.
int64_t parse_bytes(const std::string& text);
// "39.2 GiB": at most four digits.
std::string shown_bytes(int64_t bytes);

struct Verdict {
  MemoryUse use;          // of the fullest rank
  int64_t available = 0;  // bytes a rank
  int64_t margin() const { return available - use.total(); }
  bool fits() const { return margin() >= 0; }
};

// For load, generate and train, in this order.
std::vector<Verdict> fits(Module& model, const ResolvedPlan& plan, int64_t available,
                          const MemoryOptions& options = {});

struct SuggestOptions {
  int64_t available = 0;                                      // bytes a rank
  std::vector<Phase> phases = {Phase::kLoad, Phase::kTrain};  // what must fit
  // Rows of one step on all ranks together: data ranks share them, rounded up; memory.train.batch
  // is set from it. (In generation all data ranks have the same prompts.)
  int64_t global_batch = 1;
  MemoryOptions memory = {};
  at::ScalarType dtype = at::kFloat;
  int64_t max_tp = 8;  // ranks that tensor parallelism may span: those of one host
};

struct Suggestion {
  DistributedConfig config;            // as given, with the three sizes
  int64_t sent = 0;                    // bytes that rank 0 sends in one training step (sent_bytes)
  std::vector<Verdict> verdicts = {};  // of the phases that must fit
  int64_t peak() const;                // the largest of them
  bool fits() const;
};

// Layouts dp_replicate x fsdp x tp = ranks, for a config whose other fields (plans, sequence
// parallel) hold for all. Left out: a layout under which the plan has errors, and one whose tp
// leaves some rank an empty part of a parameter that it cuts. First those that fit, by bytes sent
// in a step, then by memory; after them those that do not, by memory. An empty result means that no
// layout is possible.
std::vector<Suggestion> suggest(Module& model, const DistributedConfig& config,
                                const ModelPlans& plans, int64_t ranks,
                                const SuggestOptions& options);

}  // namespace shardproof
