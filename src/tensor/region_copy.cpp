#include "tensor/region_copy.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace shardproof {
namespace {

// Positions of one dim that follow each other in both tensors.
struct Run {
  int64_t to = 0;
  int64_t from = 0;
  int64_t size = 0;
};
using Runs = std::vector<Run>;

void expect_shape(const HeldTensor& tensor) {
  SP_EXPECT(tensor.local.sizes() == at::IntArrayRef(local_shape(tensor.held)),
            "the local tensor is [{}] but the region that it holds is [{}]; give the region of "
            "this tensor",
            fmt::join(tensor.local.sizes(), ", "), fmt::join(local_shape(tensor.held), ", "));
}

// Two lists of local intervals of one total size, cut where either is cut.
Runs runs_of(const Intervals& to, const Intervals& from) {
  Runs runs;
  size_t i = 0;
  size_t j = 0;
  int64_t in_to = 0;
  int64_t in_from = 0;
  while (i < to.size() && j < from.size()) {
    const int64_t size = std::min(to[i].size() - in_to, from[j].size() - in_from);
    runs.push_back({to[i].begin + in_to, from[j].begin + in_from, size});
    in_to += size;
    in_from += size;
    if (in_to == to[i].size()) ++i, in_to = 0;
    if (in_from == from[j].size()) ++j, in_from = 0;
  }
  return runs;
}

void copy_runs(const at::Tensor& to, const at::Tensor& from, const std::vector<Runs>& runs,
               size_t dim, CopyMode mode) {
  if (dim == runs.size()) {
    if (mode == CopyMode::kAdd)
      to.add_(from);
    else
      to.copy_(from);
    return;
  }
  const auto d = static_cast<int64_t>(dim);
  for (const Run& run : runs[dim])
    copy_runs(to.narrow(d, run.to, run.size), from.narrow(d, run.from, run.size), runs, dim + 1,
              mode);
}

}  // namespace

void copy_region(const HeldTensor& to, const HeldTensor& from, const Region& region,
                 CopyMode mode) {
  at::NoGradGuard no_grad;
  expect_shape(to);
  expect_shape(from);
  const Region to_place = locate(to.held, region);
  const Region from_place = locate(from.held, region);
  std::vector<Runs> runs;
  for (size_t dim = 0; dim < region.size(); ++dim)
    runs.push_back(runs_of(to_place[dim], from_place[dim]));
  copy_runs(to.local, from.local, runs, 0, mode);
}

at::Tensor take(const at::Tensor& local, const Region& held, const Region& wanted) {
  const at::Tensor part = at::empty(local_shape(wanted), local.options().requires_grad(false));
  copy_region({part, wanted}, {local, held}, wanted);
  return part;
}

void put(const at::Tensor& local, const Region& held, const at::Tensor& part, const Region& region,
         CopyMode mode) {
  copy_region({local, held}, {part, region}, region, mode);
}

}  // namespace shardproof
