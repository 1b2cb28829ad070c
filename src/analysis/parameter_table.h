// A model's parameters under a plan as a table: what lies alike in all layers is one row.
#pragma once

#include "analysis/state.h"

namespace shardproof {

struct ParameterRow {
  std::vector<std::string> names;  // canonical, of one pattern
  std::string name;                // all of them as one: "model.layers.{0..29}.mlp.up_proj.weight"
  std::vector<int64_t> shape;      // of each, whole
  std::string placement;           // as ParameterState
  std::string style;               // of its rule, "" without one
  std::vector<std::string> units;  // FSDP units, as `names`
  struct Local {
    std::vector<int64_t> shape = {};  // of each
    int64_t bytes = 0;                // of all
  };
  std::vector<Local> local;  // on the ranks asked for
  int64_t bytes = 0;         // of all, whole
};

// Rows in the order of the model, a row where its first parameter stands. Columns for `ranks`.
std::vector<ParameterRow> parameter_table(Module& model, const ResolvedPlan& plan,
                                          const std::vector<int64_t>& ranks,
                                          const ItemSizes& sizes);

// The first rank, the one in the middle of every axis, and the last; each once.
std::vector<int64_t> first_middle_last(const MeshShape& mesh);

}  // namespace shardproof
