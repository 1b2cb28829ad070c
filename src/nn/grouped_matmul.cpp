#include "nn/grouped_matmul.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <numeric>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr int64_t kAlignment = 16;  // bytes, of strides and addresses that at::_grouped_mm takes

bool aligned(const at::Tensor& tensor, int64_t dim) {
  return tensor.stride(dim) * static_cast<int64_t>(tensor.element_size()) % kAlignment == 0;
}

bool aligned_address(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % kAlignment == 0;
}

// One of the last two dims is dense, and steps along the other are aligned, for the matrix, its
// transpose and its gradient.
bool aligned_matrices(const at::Tensor& matrices) {
  const int64_t bytes = static_cast<int64_t>(matrices.element_size());
  if (matrices.size(1) * bytes % kAlignment != 0 || matrices.size(2) * bytes % kAlignment != 0)
    return false;
  if (!aligned(matrices, 0) || !aligned_address(matrices)) return false;
  return (matrices.stride(2) == 1 && aligned(matrices, 1)) ||
         (matrices.stride(1) == 1 && aligned(matrices, 2));
}

at::Tensor loop(const at::Tensor& rows, const at::Tensor& matrices,
                std::span<const int64_t> counts) {
  // unbind, not select: its backward makes one stack, with zeros where an expert had no gradient.
  const std::vector<at::Tensor> each = matrices.unbind(0);
  std::vector<at::Tensor> products;
  int64_t begin = 0;
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    products.push_back(rows.narrow(0, begin, counts[expert]).matmul(each[expert]));
    begin += counts[expert];
  }
  return at::cat(products, 0);
}

at::Tensor grouped(const at::Tensor& rows, const at::Tensor& matrices,
                   std::span<const int64_t> counts) {
  std::vector<int32_t> ends(counts.size());
  std::partial_sum(counts.begin(), counts.end(), ends.begin());
  const at::Tensor offsets =
      at::tensor(ends, at::TensorOptions().dtype(at::kInt)).to(rows.device());
  const at::Tensor product = at::_grouped_mm(rows, matrices, offsets);
  // Its backward takes dense gradients only.
  if (product.requires_grad())
    product.register_hook([](const at::Tensor& grad) { return grad.contiguous(); });
  return product;
}

}  // namespace

GroupedKernel grouped_kernel_for(const at::Tensor& rows, const at::Tensor& matrices) {
  const bool type = (rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kBFloat16) &&
                    rows.scalar_type() == matrices.scalar_type();
  const bool some = rows.numel() > 0 && matrices.numel() > 0;
  const bool fits = type && some && rows.stride(1) == 1 && aligned(rows, 0) &&
                    aligned_address(rows) && aligned_matrices(matrices);
  return fits ? GroupedKernel::kGrouped : GroupedKernel::kLoop;
}

at::Tensor grouped_matmul(const at::Tensor& rows, const at::Tensor& matrices,
                          std::span<const int64_t> counts, GroupedKernel kernel) {
  SP_EXPECT(rows.dim() == 2 && matrices.dim() == 3 && rows.size(1) == matrices.size(1),
            "rows of {} do not go into matrices of {}", fmt::join(rows.sizes(), "x"),
            fmt::join(matrices.sizes(), "x"));
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  SP_EXPECT(static_cast<int64_t>(counts.size()) == matrices.size(0) && total == rows.size(0),
            "{} counts of {} rows in all for {} experts and {} rows", counts.size(), total,
            matrices.size(0), rows.size(0));
  if (counts.empty()) {  // no experts, so no rows either; the graph reaches both
    return rows.matmul(matrices.sum(0));
  }
  return kernel == GroupedKernel::kGrouped ? grouped(rows, matrices, counts)
                                           : loop(rows, matrices, counts);
}

at::Tensor grouped_matmul(const at::Tensor& rows, const at::Tensor& matrices,
                          std::span<const int64_t> counts) {
  return grouped_matmul(rows, matrices, counts, grouped_kernel_for(rows, matrices));
}

}  // namespace shardproof
