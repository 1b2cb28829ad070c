// A parameter: a stable handle that modules, the parallel layer, the optimizer and checkpoints
// share.
//
//   kept   the shard that this rank stores; optimizer, norm and checkpoint see `kept` and `grad`
//   only view   what modules compute with: one tensor object for life (its storage may be freed and
//   filled
//          again); requires grad. Where nothing is sharded it shares its storage with `kept`.
//   held   the global intervals that `view` covers, a list a dim: modules read head counts, expert
//          ranges and vocabulary offsets from here
//   grad   laid out like `kept`; undefined until a backward. A gradient never stays in the view.
//
// A parameter is declared with names, shape and cuts only; tensors come with place() (parallelize,
// or place_whole() for a model on one rank).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensor/placement.h"

namespace shardproof {

class Parameter {
 public:
  // `cuts`: one a dim, how the dim may be cut; a Cut without sections may be cut anywhere.
  Parameter(std::vector<int64_t> shape, std::vector<Cut> cuts);

  // Logical names, several when tied: the first is the canonical one. Set when the model is
  // finished.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name() const;
  void add_name(std::string name) { names_.push_back(std::move(name)); }

  const std::vector<int64_t>& shape() const { return shape_; }
  const Cut& cut(int64_t dim) const { return cuts_.at(dim); }

  // Puts the tensors: dtypes equal; kept has the local shape of kept_region, view that of held.
  void place(at::Tensor kept, Region kept_region, at::Tensor view, Region held);
  // kept = view = the whole, uninitialised, of this dtype.
  void place_whole(at::ScalarType dtype);
  bool placed() const { return view_.defined(); }

  const at::Tensor& kept() const { return kept_; }
  const Region& kept_region() const { return kept_region_; }
  const at::Tensor& view() const { return view_; }
  const Region& held() const { return held_; }

  // True where this rank is the one owner of kept_region (counts it in norms, writes it to files).
  bool owned = true;
  // False: frozen, no gradient. Set before place().
  bool requires_grad = true;
  at::Tensor grad;
  // Called in a backward when `grad` has become final (summed over all ranks); for observers.
  std::function<void(Parameter&)> after_grad = {};

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> shape_;
  std::vector<Cut> cuts_;
  at::Tensor kept_;
  Region kept_region_;
  at::Tensor view_;
  Region held_;
};

using ParamPtr = std::shared_ptr<Parameter>;

}  // namespace shardproof
