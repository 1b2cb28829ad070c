// What each rank keeps of a model under a plan, parameter by parameter, without placing anything.
// Pure: the model is declared only, the mesh may have any size.
#pragma once

#include "nn/module.h"
#include "parallel/resolve.h"

namespace shardproof {

// Bytes of one element.
struct ItemSizes {
  int64_t parameter = 4;
  int64_t gradient = 4;
  int64_t moment = 4;  // an optimizer keeps two of them for each element (AdamW)
  int64_t value = 4;   // of what modules pass to each other
  // All of them as torch keeps them for one dtype.
  static ItemSizes all(int64_t bytes) { return {bytes, bytes, bytes, bytes}; }
};

// One parameter on one rank.
struct ParameterState {
  std::string name;                  // canonical
  std::vector<int64_t> shape;        // of the whole
  std::string placement;             // "tp S(0), fsdp S(0)" as kept, in nest order; "R" = whole
  std::string unit;                  // path of its FSDP unit, "" = the root unit
  std::vector<int64_t> local_shape;  // of `kept`
  int64_t elements = 0;              // of `kept`
  int64_t view_elements = 0;         // of what modules compute with, while it is gathered
  int64_t bytes = 0;                 // elements * item size of a parameter
};

// In the order of the plan.
std::vector<ParameterState> parameters_on(Module& model, const ResolvedPlan& plan, int64_t rank,
                                          const ItemSizes& sizes = {});

// The totals of one rank, in bytes. Frozen parameters have no gradient and no moments.
struct RankState {
  int64_t rank = 0;
  int64_t elements = 0;  // of parameters
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t moments = 0;
  int64_t total() const { return parameters + gradients + moments; }
  bool operator==(const RankState&) const = default;
};

struct ModelState {
  int64_t elements = 0;         // of the whole model, tied parameters once
  RankState fullest, emptiest;  // by total; the lowest rank where several are equal
};

// The extremes over all ranks of plan.mesh: each class of parameters that lie alike is worked out
// once for each coordinate, not for each rank (10,000 ranks take milliseconds).
ModelState state_of(Module& model, const ResolvedPlan& plan, const ItemSizes& sizes = {});
RankState state_on(Module& model, const ResolvedPlan& plan, int64_t rank,
                   const ItemSizes& sizes = {});

}  // namespace shardproof
