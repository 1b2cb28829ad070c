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
#include <optional>
#include <string>
#include <vector>

#include "tensor/placement.h"

namespace shardproof {

// Which dims of a parameter are output and input features of what it computes: what "colwise" and
// "rowwise" cut. -1: none, as a bias has no input features.
struct FeatureDims {
  int64_t out = -1;
  int64_t in = -1;
};

class Parameter {
 public:
  // `cuts`: one a dim, how the dim may be cut; a Cut without sections may be cut anywhere.
  // `features`: by default the last dim but one and the last, as of a Linear's weight; of one dim,
  // output features.
  Parameter(std::vector<int64_t> shape, std::vector<Cut> cuts,
            std::optional<FeatureDims> features = {});

  // Logical names, several when tied: the first is the canonical one. Set when the model is
  // finished.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name() const;
  void add_name(std::string name) { names_.push_back(std::move(name)); }

  const std::vector<int64_t>& shape() const { return shape_; }
  const Cut& cut(int64_t dim) const { return cuts_.at(dim); }
  FeatureDims features() const { return features_; }

  // Puts the tensors: dtypes equal; kept has the local shape of kept_region, view that of held.
  void place(at::Tensor kept, Region kept_region, at::Tensor view, Region held);
  // kept = view = the whole, uninitialised, of this dtype.
  void place_whole(at::ScalarType dtype);
  bool placed() const { return view_.defined(); }

  const at::Tensor& kept() const { return kept_; }
  const Region& kept_region() const { return kept_region_; }
  const at::Tensor& view() const { return view_; }
  const Region& held() const { return held_; }

  // The part of kept_region that this rank counts in norms and writes to files: each element of the
  // parameter has one owner. place() says all of it; parallelize what it is.
  Region owned;
  // False: frozen, no gradient. Set before place().
  bool requires_grad = true;
  at::Tensor grad;
  // Called in a backward when `grad` has become final (summed over all ranks); for observers.
  std::function<void(Parameter&)> after_grad = {};

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> shape_;
  std::vector<Cut> cuts_;
  FeatureDims features_;
  at::Tensor kept_;
  Region kept_region_;
  at::Tensor view_;
  Region held_;
};

using ParamPtr = std::shared_ptr<Parameter>;

}  // namespace shardproof
