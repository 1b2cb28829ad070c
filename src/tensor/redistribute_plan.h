// How a tensor gets from one layout to another: a plan for one rank, from shapes and placements
// alone. Pure: what analysis adds up and what redistribute() runs.
//
// Any layout to any other: R, S, P, A of each axis in any nest order. The plan is a list of slabs
// of the global tensor, the same number on all ranks, so that scratch memory stays bounded; in each
// slab
//   1. addends are summed: P over its axis, A over its blocks, by reduce-scatter into what the
//   target needs
//      of each member, by all-reduce where all members need all, else by reduce-scatter into even
//      parts;
//   2. boxes are exchanged: a rank receives exactly the elements of its target that it does not
//   hold, each
//      once, from the holder that shares the most coordinates with it (the next higher rank among
//      equals).
// Before 1, ranks drop what no member of the summing ranks needs. A target P (or A) gets each
// element on one coordinate, one that holds it where there is any, and zeros elsewhere: R -> P and
// S -> P move nothing. An axis with P on both sides stays as it is, and A with the same cut and
// outer placements likewise. Addends whose blocks hold different regions (an uneven nest inside a
// cut that mixes copies and other sections) are not reduced in blocks: each target receives every
// addend of its elements and adds them.
#pragma once

#include <string>
#include <vector>

#include "tensor/placement.h"

namespace shardproof {

struct ReduceStep {
  enum class Kind { kAllReduce, kReduceScatter };
  Kind kind = Kind::kAllReduce;
  std::string axis;
  int64_t block = 1;          // neighbours on the axis that add; the whole axis for P
  int64_t member = 0;         // this rank among them
  Region input;               // what each of them holds
  std::vector<Region> parts;  // kReduceScatter: what each of them keeps
  Region output;              // what this rank keeps
};

struct Transfer {
  int64_t rank = 0;  // the peer, a rank of the mesh
  Region region;
};

struct ExchangeStep {
  bool moves = false;           // between any two ranks: then all ranks of the axes take part
  std::vector<Transfer> sends;  // ascending by peer; between two ranks in one order on both sides
  std::vector<Transfer> receives;  // likewise
  std::vector<Region> copies;      // from this rank's own part
};

// Ranks that add: blocks of `block` neighbours on an axis.
struct ReduceGroup {
  std::string axis;
  int64_t block = 1;
};

struct Slab {
  Region input;  // the part of the source that reductions start from; unused without reductions
  std::vector<ReduceStep> reductions;
  std::vector<ExchangeStep> exchanges;
};

struct RedistributePlan {
  Region source;  // of this rank
  Region target;
  bool identity = false;                   // nothing to do
  bool zero_filled = false;                // the target begins as zeros, and
  bool adds = false;                       // exchanges add into it
  std::vector<std::string> axes;           // that boxes move along, in mesh order
  std::vector<ReduceGroup> reduce_groups;  // of all reductions
  std::vector<Slab> slabs;
  // Of this rank, over all steps, to and from other ranks. An all-reduce counts as reduce-scatter
  // and all-gather.
  int64_t elements_sent = 0;
  int64_t elements_received = 0;
};

struct RedistributeRequest {
  std::vector<int64_t> shape;
  Placements source;
  Placements target;
  MeshShape mesh;
  int64_t rank = 0;
  int64_t element_bytes = 8;
  int64_t scratch_bytes = 16 << 20;  // what a rank may hold besides source and target
};

// Throws ContractError for a placement that names an axis twice or a dim that the tensor has not.
RedistributePlan plan_redistribute(const RedistributeRequest& request);

}  // namespace shardproof
