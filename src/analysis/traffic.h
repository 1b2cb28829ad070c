// What one forward and backward send under a plan, without running them. Pure: the model is
// declared only, the mesh may have any size.
//
// The records are those that a Recorder (comm/recording.h) would have of the same rank, in another
// order. They follow from the same data as what happens: the edges of styles, the FSDP units, and
// the links between modules, by which widths of values, gradients that are needed and siblings that
// share one conversion are found (analysis/values.h).
#pragma once

#include <map>

#include "comm/recording.h"
#include "nn/module.h"
#include "parallel/resolve.h"

namespace shardproof {

// What one data rank computes in one step.
struct BatchShape {
  int64_t batch = 1;   // rows
  int64_t length = 1;  // tokens a row
  int64_t tokens() const { return batch * length; }
};

// Rows (tokens, once for each route) that reach the experts of a rank in one call of a module,
// where all data ranks have as many tokens.
struct RoutedRows {
  std::string module;
  int64_t least = 0;     // as many as can go to experts of others
  int64_t balanced = 0;  // every expert as many as any other, rounded down
  int64_t most = 0;      // as many as these experts can get
};

struct TrafficOptions {
  at::ScalarType dtype = at::kFloat;  // of parameters and of values
  bool loss = true;         // the two all-reduces of a loss on logits that are cut by vocabulary
  bool smoothing = false;   // ... with label smoothing
  bool train_step = false;  // what train_step() adds: valid_tokens, loss, grad_norm
  // Of a routing that is known: the rows that arrive, by module.
  std::map<std::string, int64_t> arriving = {};
};

struct Traffic {
  std::vector<Record> records;
  // Values that are converted though no module states their width: "model.layers.0.mlp \"output\"".
  // Their records are missing.
  std::vector<std::string> unknown;
  // Experts that are sent their tokens, where the options do not say how many arrive: records are
  // those of a balanced routing.
  std::vector<RoutedRows> routed;
};

Traffic traffic_of(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
                   const TrafficOptions& options = {});

// What the rank of this record sends in the bandwidth-optimal algorithms of Thakur, Rabenseifner
// and Gropp (2005): n ranks, b = record.bytes. all_reduce 2 (n - 1) / n b, reduce_scatter and
// all_to_all (n - 1) / n b, all_gather (n - 1) b, broadcast b.
int64_t sent_bytes(const Record& record);

// Sums by (axis, operation), by bytes sent, largest first.
struct TrafficSum {
  std::string axis;
  std::string operation;
  int64_t ranks = 0;  // of the communicator
  int64_t calls = 0;
  int64_t elements = 0;
  int64_t bytes = 0;  // handed in
  int64_t sent = 0;   // sent_bytes
};
std::vector<TrafficSum> sums_of(const std::vector<Record>& records);
int64_t total_sent(const std::vector<Record>& records);

}  // namespace shardproof
