// The inside of plan_redistribute(): what is the same for all slabs. Not for other use.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/cells.h"
#include "tensor/redistribute_plan.h"

namespace shardproof {

class RedistributePlanner {
 public:
  explicit RedistributePlanner(const RedistributeRequest& request);

  RedistributePlan plan();

 private:
  using Regions = std::vector<Region>;  // one a rank
  // Ranks that add: blocks of `block` neighbours on a mesh axis.
  struct Adders {
    size_t axis;
    int64_t block;
  };
  // A slab, and the elements of scratch that the rank with the most needs for it.
  struct SlabPlan {
    Slab slab;
    int64_t scratch_elements = 0;
  };

  const Placement& on_axis(const Placements& placements, size_t axis) const;
  bool stays(size_t axis) const;
  bool blocks_agree(size_t axis, int64_t block) const;
  int64_t project(int64_t rank, const std::vector<size_t>& axes) const;
  std::vector<int64_t> adders_of(int64_t rank, const std::vector<Adders>& adders) const;

  std::vector<Region> slab_regions(int64_t count) const;
  SlabPlan plan_slab(const Region& slab);
  void narrow(Regions& held, const Regions& wanted, const std::vector<Adders>& adders) const;
  bool all_served(const Regions& held, const Regions& wanted) const;
  // What each rank keeps of a sum: what it or one of those that add with it later needs. Good for a
  // reduce-scatter where partition() says so.
  Regions needed_parts(const Regions& held, const Regions& wanted,
                       const std::vector<Adders>& rest) const;
  Regions even_parts(const Regions& held, const Adders& adders) const;
  bool partition(const Regions& held, const Regions& parts, const Adders& adders) const;
  ReduceStep reduce_step(const Regions& held, const Regions& kept, const Adders& adders,
                         bool all) const;
  ExchangeStep plan_exchange(const Regions& held, const Regions& wanted, int64_t term,
                             int64_t& scratch);
  std::vector<int64_t> receivers(const Cell& cell) const;
  int64_t nearest_holder(const Cell& cell, int64_t rank, int64_t term) const;
  void count(const ReduceStep& step);

  const RedistributeRequest& request_;
  int64_t ranks_;
  std::vector<std::vector<int64_t>> coordinates_;
  Regions source_;
  Regions target_;
  std::vector<Adders> adders_;       // to be reduced
  std::vector<size_t> term_axes_;    // whose addends are exchanged one after the other
  std::vector<size_t> spread_axes_;  // of the target: one coordinate gets an element
  std::vector<int64_t> lane_;        // ranks exchange within a lane: axes that stay Partial
  std::vector<int64_t> term_;        // the coordinate on term_axes_
  std::vector<int64_t> spread_;      // the coordinate on spread_axes_
  std::vector<bool> moved_axes_;
  RedistributePlan plan_;
};

}  // namespace shardproof
