#include "nn/parameter.h"

#include "base/check.h"

namespace shardproof {

Parameter::Parameter(std::vector<int64_t> shape, std::vector<Cut> cuts,
                     std::optional<FeatureDims> features)
    : shape_(std::move(shape)), cuts_(std::move(cuts)) {
  const auto dims = static_cast<int64_t>(shape_.size());
  features_ = features.value_or(dims > 1    ? FeatureDims{dims - 2, dims - 1}
                                : dims == 1 ? FeatureDims{0, -1}
                                            : FeatureDims{});
  SP_EXPECT(cuts_.size() == shape_.size(), "a parameter of {} dims was given {} cuts: one a dim",
            shape_.size(), cuts_.size());
  for (size_t dim = 0; dim < shape_.size(); ++dim) {
    SP_EXPECT(cuts_[dim].sections.empty() || cuts_[dim].width() == shape_[dim],
              "the cut of dim {} covers {} positions, the dim has {}", dim, cuts_[dim].width(),
              shape_[dim]);
  }
}

const std::string& Parameter::name() const {
  SP_EXPECT(!names_.empty(), "a parameter of shape {} has no name yet: call finish() on the root",
            fmt::join(shape_, "x"));
  return names_.front();
}

void Parameter::place(at::Tensor kept, Region kept_region, at::Tensor view, Region held) {
  const std::string label = names_.empty() ? "a parameter" : names_.front();
  SP_EXPECT(!placed(), "{} is placed already: its view stays one tensor object for life", label);
  SP_EXPECT(kept.defined() && view.defined(), "{}: kept and view must both be defined", label);
  SP_EXPECT(kept.scalar_type() == view.scalar_type(), "{}: kept is {}, view is {}", label,
            at::toString(kept.scalar_type()), at::toString(view.scalar_type()));
  const auto check_shape = [&](const char* what, const at::Tensor& tensor, const Region& region) {
    SP_EXPECT(region.size() == shape_.size(), "{}: the region of {} has {} dims, the parameter {}",
              label, what, region.size(), shape_.size());
    SP_EXPECT(tensor.sizes().vec() == local_shape(region), "{}: {} has shape {}, its region has {}",
              label, what, fmt::join(tensor.sizes(), "x"), fmt::join(local_shape(region), "x"));
  };
  check_shape("kept", kept, kept_region);
  check_shape("view", view, held);

  // Two tensor objects even where one was given: the view takes part in autograd, kept never does.
  kept_ = kept.detach();
  view_ = view.detach();
  view_.set_requires_grad(requires_grad);
  owned = kept_region;
  kept_region_ = std::move(kept_region);
  held_ = std::move(held);
  grad.reset();
}

void Parameter::place_whole(at::ScalarType dtype) {
  const at::Tensor whole = at::empty(shape_, at::TensorOptions().dtype(dtype));
  place(whole, whole_region(shape_), whole, whole_region(shape_));
}

}  // namespace shardproof
