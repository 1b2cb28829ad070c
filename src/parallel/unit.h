// An FSDP / DDP unit: the parameters that are gathered and reduced together.
//
// Life of the views: gathered before the unit's forward (all-gather over fsdp into storage that is
// allocated then), freed after it if the plan says free_full_weight, gathered again before its
// backward, and freed when the last of its gradients has been reduced. Without a backward to follow
// (gradients off) every unit is freed after forward. Where fsdp has size 1 views share their
// storage with `kept` and nothing is gathered or freed.
//
// Life of a gradient: when the last gradient of the unit has arrived in a backward, all of them go
// through one reduce-scatter over fsdp and one all-reduce over dp_replicate; then the conversions
// of tensor parallelism (sums over copies), and what is left, laid out like `kept`, is added to
// Parameter::grad.
#pragma once

#include "mesh/device_mesh.h"
#include "nn/parameter.h"
#include "parallel/resolve.h"
#include "tensor/conversion.h"

namespace shardproof {

// The communicators that units need; made once, in parallelize.
struct UnitComms {
  CommPtr fsdp, dp_replicate;  // nullptr at size 1; for experts "fsdp" is "efsdp"
  int64_t fsdp_size = 1;
  int64_t fsdp_coordinate = 0;
};

class Unit : public std::enable_shared_from_this<Unit> {
 public:
  struct Item {
    ParamPtr parameter;
    Edge edge;
    AxisView axis;  // of the edge
    std::vector<int64_t>
        shape;  // of the tensor-parallel part: kept parts of all fsdp coordinates together
    std::vector<int64_t> rows;  // of that, by fsdp coordinate
    // Copies in some sections of the shard only.
    bool sums_in_part() const {
      return edge.grad_inside.kind == Placement::Kind::kAddends &&
             copies_in_part(edge.grad_inside.cut, axis.size);
    }
  };

  Unit(ResolvedUnit resolved, UnitComms comms, std::vector<Item> items);
  // Hooks the views' gradients. After construction, once owned by a shared_ptr.
  void attach();

  const ResolvedUnit& resolved() const { return resolved_; }
  bool gathered() const { return gathered_; }

  // Collective over fsdp, no-ops where nothing is sharded.
  void before_forward();
  void after_forward(bool backward_follows);
  void before_backward();
  // After a backward: reduces what has arrived if some parameter got no gradient, and frees.
  void finish_backward();
  // A new call of the root: whatever is still gathered holds values of the last step.
  void invalidate();

 private:
  class GradHook;
  void gather(const char* phase);
  void free();
  void arrived(size_t index);
  void reduce();
  void fill_masks();
  std::vector<at::Tensor> reduced_over_data(const std::vector<size_t>& indices);
  int64_t row_size(const Item& item) const;
  bool sharded() const { return comms_.fsdp != nullptr; }

  ResolvedUnit resolved_;
  UnitComms comms_;
  std::vector<Item> items_;
  std::vector<at::Tensor> arrived_grads_;  // by item, undefined until it arrives
  std::vector<size_t> arrival_order_;
  size_t expected_ = 0;
  bool gathered_ = false;
};

}  // namespace shardproof
