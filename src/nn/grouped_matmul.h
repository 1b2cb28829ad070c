// Rows times the matrix of the expert that each belongs to.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace shardproof {

enum class GroupedKernel {
  kLoop,     // one product an expert: any type, any strides
  kGrouped,  // at::_grouped_mm: float32 and bfloat16, strides of 16 bytes
};

// The one that takes these: kGrouped where types, strides and addresses allow it.
GroupedKernel grouped_kernel_for(const at::Tensor& rows, const at::Tensor& matrices);

// rows [R, in], the ones of expert 0 first, then those of expert 1, ...: `counts` says how many
// each has, together R. matrices [experts, in, out], any strides. Output [R, out]: every row is
// written, there are none beyond. Gradients reach rows and matrices also where R is 0; that of a
// matrix without rows is zero. Throws ContractError where counts do not add up to R.
at::Tensor grouped_matmul(const at::Tensor& rows, const at::Tensor& matrices,
                          std::span<const int64_t> counts, GroupedKernel kernel);
at::Tensor grouped_matmul(const at::Tensor& rows, const at::Tensor& matrices,
                          std::span<const int64_t> counts);

}  // namespace shardproof
