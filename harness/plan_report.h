// What `shardproof plan` says, as data, as JSON and as text.
//
// JSON ("schema": "shardproof-plan/1"): model, layout, ranks, dtype, elements; errors (a number);
// findings [{severity "error" | "note", check, pattern, style, origin "file:line" or "", subject,
// message}]; not_checked [text]; parameters [{name, count, shape, placement, style, units, bytes,
// local [{rank, shape, bytes}]}], bytes of all `count` of them; totals {fullest, emptiest} of
// {rank, parameters, gradients, moments, total} in bytes; coverage {elements, uncovered}; traffic
// {batch, length, rank, sums [{axis, operation, ranks, calls, elements, bytes, sent}], unknown,
// routed [{module, least, balanced, most}] in rows};
// memory [{phase, rank, parameters, gradients, moments, gathered, buffers, activations, cache,
// total, available, margin, fits}]; suggestions [{layout, sent, peak, fits}]. Absent where it was
// not asked for, or could not be known.
#pragma once

#include <ostream>

#include "analysis/coverage.h"
#include "analysis/fit.h"
#include "analysis/parameter_table.h"
#include "analysis/traffic.h"

namespace shardproof {

struct TrafficReport {
  BatchShape batch;  // of one data rank
  int64_t rank = 0;
  Traffic traffic = {};
};

struct PlanReport {
  std::string model;   // "llama, fixtures/llama_untied_9_3"
  std::string layout;  // "fsdp=2,tp=2"
  MeshShape mesh;
  std::string dtype;
  Findings findings = {};
  // Rules are at fault: the tables below say what holds without them.
  bool broken = false;
  std::vector<std::string> not_checked = {};  // checks that this model does not allow
  std::vector<int64_t> ranks = {};            // columns of `parameters`
  std::vector<ParameterRow> parameters = {};
  ModelState state = {};
  Coverage coverage = {};
  std::optional<TrafficReport> traffic = {};
  std::vector<Verdict> memory = {};
  std::optional<std::vector<Suggestion>> suggestions = {};
};

void print_json(const PlanReport& report, std::ostream& out);
// For people. A plan with rules at fault shows its findings only.
void print_text(const PlanReport& report, std::ostream& out);

}  // namespace shardproof
