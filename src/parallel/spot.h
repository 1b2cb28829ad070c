// Spots of styles meet modules: which placement a spot is at a port or a parameter. Pure.
#pragma once

#include "nn/module.h"
#include "parallel/style.h"

namespace shardproof {

// A port or parameter that has not what a spot is to cut.
struct Misfit {
  std::string why;
};

// Throws Misfit where the port follows no parameter. `axis_size`: of the axis of the edge; where
// ranks hold copies of a part whose gradient is whole outside, only one of them gets it: their sum
// is it.
Edge edge_at_port(const EdgeStyle& edge, const Module& module, const Port& port, int64_t axis_size,
                  bool sequence_parallel);

// Throws Misfit where the parameter has no such features. `axis_size`: of the axis of the edge;
// where the parameter is held as copies there, its gradient comes as addends.
Edge edge_at_parameter(const EdgeStyle& edge, const Parameter& parameter, int64_t axis_size,
                       bool sequence_parallel);

// The parameter dim that a spot cuts; -1 = none.
int64_t cut_dim(Spot spot, const Parameter& parameter);

}  // namespace shardproof
