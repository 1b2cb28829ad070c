// Helpers of unit tests: reproducible values, and a module placed on one coordinate of a tp axis by
// hand.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "nn/module.h"

namespace shardproof::testing {

// Not symmetric, not zero, different for each seed; double.
inline at::Tensor values(const std::vector<int64_t>& shape, int64_t seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const at::Tensor steps = at::arange(count, at::kDouble) + static_cast<double>(seed) * 17.0;
  return (at::sin(steps * 0.7) + 0.3 * at::cos(steps * 1.9)).reshape(shape);
}

// |got - want| / |want|, Frobenius.
inline double relative_error(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return INFINITY;
  const double scale = want.norm().item<double>();
  const double error = (got - want).norm().item<double>();
  return error == 0 ? 0 : error / scale;
}

inline at::Tensor take(const at::Tensor& whole, const Region& region) {
  at::Tensor part = whole;
  for (size_t dim = 0; dim < region.size(); ++dim) {
    std::vector<int64_t> positions;
    for (const Interval& interval : region[dim]) {
      for (int64_t i = interval.begin; i < interval.end; ++i) positions.push_back(i);
    }
    part = part.index_select(static_cast<int64_t>(dim), at::tensor(positions, at::kLong));
  }
  return part;
}

// Adds `part` to the region of `whole`.
inline void add_into(at::Tensor whole, const Region& region, const at::Tensor& part) {
  at::Tensor positions = at::arange(whole.numel()).reshape(whole.sizes());
  whole.view(-1).index_add_(0, take(positions, region).reshape(-1), part.reshape(-1));
}

using Whole = std::map<std::string, at::Tensor>;

// Values for every parameter of a finished module, by name.
inline Whole whole_values(Module& module) {
  Whole whole;
  int64_t seed = 1;
  for (const ParamPtr& parameter : module.all_parameters()) {
    whole[parameter->name()] = values(parameter->shape(), seed++);
  }
  return whole;
}

// Places each parameter with the region that `region_of` gives for it.
inline void place(Module& module, const Whole& whole,
                  const std::function<Region(const Parameter&)>& region_of) {
  for (const ParamPtr& parameter : module.all_parameters()) {
    const Region region = region_of(*parameter);
    const at::Tensor part = take(whole.at(parameter->name()), region).contiguous();
    parameter->place(part, region, part, region);
  }
}

inline void place_whole(Module& module, const Whole& whole) {
  place(module, whole, [](const Parameter& parameter) { return whole_region(parameter.shape()); });
}

}  // namespace shardproof::testing
