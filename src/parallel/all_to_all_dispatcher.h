// Experts on other ranks: each token goes to the ranks of its experts and the results come back.
#pragma once

#include "comm/communicator.h"
#include "nn/expert_dispatcher.h"
#include "tensor/placement.h"

namespace shardproof {

// The experts of one layer over the ranks of an expert-parallel group, dealt as `cut` says
// (uneven counts and ranks without experts work). combine() is collective over the group, forward
// and backward: all ranks must call it, with any number of tokens, none included, and run the same
// backward. Routing weights stay with the token's own rank, where they are applied; so their
// gradients are whole there. Results are summed in the order of a token's routes: the same bits
// whatever the ranks.
class AllToAllDispatcher final : public ExpertDispatcher {
 public:
  // `module`: the path that records show. `cut` of dim 0 of the stacked parameters, `experts` of
  // them.
  AllToAllDispatcher(CommPtr group, const Cut& cut, int64_t experts, std::string module);

  at::Tensor combine(const Routes& routes, const RunExperts& run) override;

 private:
  CommPtr group_;
  std::vector<int64_t> held_by_;  // the experts of each rank, in order
  std::string module_;
};

}  // namespace shardproof
