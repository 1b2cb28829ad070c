// A run compared with a recorded one, part by part: no rank ever holds a whole tensor for it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "harness/rule.h"

namespace shardproof {

// Of one value: how far the run is from the record; of generation, see generation_rule.h.
struct Row {
  ValueKey key;
  int64_t order = 0;
  int level = 1;                  // of the rule; see rule.h. 3: against transformers
  std::string dtype = "float64";  // that the run computed in
  int64_t elements = 0;
  double truth_norm = 0;
  double error = 0;    // norm of the difference / norm of the truth
  double allowed = 0;  // the largest error that passes
  bool passed = false;
  bool zero = false;                  // zero by mathematics on both sides, and allowed by name
  std::string note = "not compared";  // "" where there is nothing to say
  std::vector<double> margins = {};   // of tokens: the run's top-2 margin at each step

  // Of what is allowed, how much was used; NaN where nothing is allowed.
  double share() const { return error / allowed; }
};

// Of one value: what all ranks together found.
struct Measurement {
  double elements = 0;  // that were compared
  double missing = 0;   // ranks that have none where they should
  bool finite = true;   // every element, on every rank
  double norm = 0;      // of the run's value
  double error = 0;     // norm of its difference from the record
};

struct ComparisonOptions {
  int64_t steps = 0;          // how many steps the run makes; later ones of the record are left out
  std::set<Kind> kinds = {};  // what is compared; empty: everything
  std::vector<std::string> allow_zero = {};  // patterns of names that may be zero on both sides
  // Given: the run is judged at level 2, else at level 1. Of this record, and outlives the
  // comparison.
  const RoundingErrors* rounding = nullptr;
};

class RunComparison {
 public:
  RunComparison(const RunRecord& record, ComparisonOptions options);

  // Takes in this rank's part of a value. Throws ContractError for one that the record lacks, or
  // with another shape.
  void take(const Value& value);

  // Collective over `comm`, all ranks of the run: two all-reduces. One for each entry of the
  // record, alike on all ranks. An error counts each element once, by its owner; a copy that
  // differs from its owner's counts too.
  std::vector<Measurement> measure(Communicator& comm) const;

  // Collective, as measure(). A row for each recorded value that the run was to have, in execution
  // order, alike on all ranks.
  std::vector<Row> finish(Communicator& comm) const;

 private:
  bool expected(const RecordEntry& entry) const;
  Row judge(const RecordEntry& entry, const Measurement& measured) const;
  void judge_gradient_presence(const RecordEntry& entry, double missing, Row& row) const;
  bool may_be_zero(const std::string& name) const;

  const RunRecord& record_;
  ComparisonOptions options_;
  std::vector<double> sums_;    // by entry, several fields each: added over ranks
  std::vector<double> copies_;  // by entry, several fields each: the largest over ranks
};

// The first row in execution order that did not pass; nullptr where all did.
const Row* first_wrong(const std::vector<Row>& rows);
// The row with the largest share of what is allowed.
const Row* worst(const std::vector<Row>& rows);

}  // namespace shardproof
