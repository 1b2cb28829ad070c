// Reading scenarios from TOML. The format (an inline table must be on one line):
//
//   claim = "what is claimed, in a sentence"   required
//   tags = ["ci"]
//   models = ["../fixtures/llama_tied_4_1"]    required; directories, relative to this file
//   init_seed = 5                              models have no weights: they start from this seed
//   layouts = ["fsdp=2", {layout = "dp_replicate=4", steps = 1, check = ["gradients"]}]
//       the runs; a table may have ranks_as too; may be left out where reference = true
//   sequence_parallel = true                   of every layout; a layout's table may have it too
//   ep_implementation = "all_to_all"           of every layout ["auto"]
//   [tp_plan]                                  rules that go before the model's own, of every
//   layout
//       "lm_head" = "colwise_loss_parallel"
//   against = ["single", "dp_replicate"]       what runs are compared with ["single"]
//   steps = 3                                  optimizer steps of a run
//   watch = "modules" | "layers"               which modules' outputs are compared
//   ranks_as = "processes" | "threads"
//   reference = true                           compare the unsharded run with transformers too
//   allow_zero = ["model.layers.*.x.weight"]   may be zero, or missing, on both sides
//   dtype = "float64"                          of the runs at level 1; the only one
//   level2 = ["float32", "bfloat16"]           types in which the first step of every layout is
//       also judged at level 2, against the float64 truth [none]
//   fault = {kind = "drop_all_reduce", at = "model.layers.0.self_attn.o_proj"}
//       planted in every run, so that the scenario must fail; or "shift_rows" with `at` and `by`,
//       or "count_tokens_over_world"
//   [data]       samples, length, seed
//   [optimizer]  lr, beta1, beta2, eps, weight_decay, max_norm (0: no clipping)
//   [generation]  layouts generate instead of training: the prompts of generation.json of each
//   model
//       (reference/make_smollm2.py makes it), as one batch, compared with what transformers
//       generated in float32. Goes with claim, tags, models, layouts, ranks_as and fault alone.
//       dtypes = ["float32", "bfloat16"]       required; the rule of each: generation_rule.h
//       tokens = 8                             new ones of a prompt [as many as the reference has]
#pragma once

#include <optional>

#include "harness/scenario.h"

namespace shardproof {

// Throws InputError, "file:line: key: problem", for unknown keys, wrong types and values, models
// that are not there, and layouts that do not parse. `ranks_as`, where given, goes before what the
// file says.
Scenario read_scenario(const std::filesystem::path& file, std::optional<RanksAs> ranks_as = {});

// True where the file states this tag; nothing else of it is looked at. Throws InputError where it
// is no TOML.
bool has_tag(const std::filesystem::path& file, const std::string& tag);

// The files that `names` mean: stems of files in `folder`, or paths of TOML files. Throws
// InputError with the known stems.
std::vector<std::filesystem::path> find_scenarios(const std::filesystem::path& folder,
                                                  const std::vector<std::string>& names);
// All TOML files of a folder, sorted.
std::vector<std::filesystem::path> all_scenarios(const std::filesystem::path& folder);

}  // namespace shardproof
