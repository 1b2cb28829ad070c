#include "train/initialize.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/rng.h"
#include "nn/initial_values.h"

namespace shardproof {
namespace {

constexpr int64_t kChunk = 4096;  // values drawn before they are converted

// Goes through the global positions of a region, in the order in which they lie in its shard.
class Positions {
 public:
  Positions(const std::vector<int64_t>& shape, const Region& region) {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      std::vector<int64_t>& list = dims_.emplace_back();
      for (const Interval& interval : region[dim])
        for (int64_t i = interval.begin; i < interval.end; ++i) list.push_back(i);
      strides_.push_back(1);
      for (size_t outer = 0; outer < dim; ++outer) strides_[outer] *= shape[dim];
    }
    at_.resize(shape.size());
  }

  // The position's index in the flat global tensor, and its row (0 for a tensor without dims).
  uint64_t flat() const {
    int64_t index = 0;
    for (size_t dim = 0; dim < dims_.size(); ++dim) index += dims_[dim][at_[dim]] * strides_[dim];
    return static_cast<uint64_t>(index);
  }
  int64_t row() const { return dims_.empty() ? 0 : dims_[0][at_[0]]; }
  void advance() {
    for (size_t dim = dims_.size(); dim > 0 && ++at_[dim - 1] == dims_[dim - 1].size(); --dim)
      at_[dim - 1] = 0;
  }

 private:
  std::vector<std::vector<int64_t>> dims_;  // of each dim, the global positions that are held
  std::vector<int64_t> strides_;
  std::vector<size_t> at_;
};

void fill(const Parameter& parameter, const InitialValues& values, uint64_t seed,
          const InitializeOptions& options) {
  using Kind = InitialValues::Kind;
  const double middle = values.kind == Kind::kOnes ? 1 : 0;
  const double deviation =
      values.kind == Kind::kNormal ? options.standard_deviation : options.spread;
  SP_EXPECT(parameter.kept().is_contiguous(), "{}: kept is not contiguous", parameter.name());
  const at::Tensor kept = parameter.kept().view({-1});
  const int64_t count = kept.numel();
  const CounterRng rng(seed, parameter.name());
  Positions position(parameter.shape(), parameter.kept_region());
  const at::Tensor drawn = at::empty({std::min(kChunk, count)}, at::kDouble);
  double* const numbers = drawn.mutable_data_ptr<double>();
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t size = std::min(kChunk, count - begin);
    for (int64_t i = 0; i < size; ++i, position.advance()) {
      if (values.zero_row && *values.zero_row == position.row()) {
        numbers[i] = 0;
      } else {
        numbers[i] = deviation == 0 ? middle : middle + deviation * rng.normal(position.flat());
      }
    }
    kept.narrow(0, begin, size).copy_(drawn.narrow(0, 0, size));
  }
}

}  // namespace

void initialize_parameters(Module& model, uint64_t seed, const InitializeOptions& options) {
  const at::NoGradGuard no_grad;
  std::unordered_set<const Parameter*> done;  // a tied one under its first name
  for (Module* module : model.modules()) {
    for (const auto& [name, parameter] : module->parameters()) {
      if (!done.insert(parameter.get()).second) continue;
      SP_EXPECT(parameter->placed(),
                "{} is not placed: parallelize the model or place_whole() first",
                parameter->name());
      const auto* stated = dynamic_cast<const StatesInitialValues*>(module);
      SP_EXPECT(stated != nullptr,
                "{} does not state what its parameter '{}' starts with: derive it from "
                "StatesInitialValues (nn/initial_values.h)",
                module->label(), name);
      fill(*parameter, stated->initial_values(name), seed, options);
    }
  }
}

}  // namespace shardproof
