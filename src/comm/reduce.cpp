#include "comm/reduce.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace shardproof {

namespace {

// The running value of a block stays in the second-level cache.
constexpr int64_t kBlock = 1 << 15;

bool is_low(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }

void combine(at::Tensor out, const at::Tensor& a, const at::Tensor& b, ReduceOp op) {
  if (out.scalar_type() == at::kBool) {
    if (op == ReduceOp::kMin) {
      at::logical_and_out(out, a, b);
    } else {
      at::logical_or_out(out, a, b);
    }
    return;
  }
  switch (op) {
    case ReduceOp::kSum:
      at::add_out(out, a, b);
      break;
    case ReduceOp::kMax:
      at::maximum_out(out, a, b);
      break;
    case ReduceOp::kMin:
      at::minimum_out(out, a, b);
      break;
  }
}

void reduce_block(const at::Tensor& out, std::span<const at::Tensor> parts, ReduceOp op,
                  const at::Tensor& running) {
  if (is_low(out.scalar_type()) && op == ReduceOp::kSum) {
    running.copy_(parts[0]);
    for (const at::Tensor& part : parts.subspan(1)) running.add_(part);
    out.copy_(running);
    return;
  }
  combine(running, parts[0], parts[1], op);
  for (size_t i = 2; i + 1 < parts.size(); ++i) combine(running, running, parts[i], op);
  combine(out, running, parts.back(), op);
}

}  // namespace

void reduce_in_order(const at::Tensor& out, std::span<const at::Tensor> parts, ReduceOp op) {
  SP_EXPECT(!parts.empty(), "nothing to reduce: no parts given");
  const int64_t count = out.numel();
  if (count == 0) return;
  if (parts.size() == 1) {
    if (out.data_ptr() != parts[0].data_ptr()) out.copy_(parts[0]);
    return;
  }
  if (parts.size() == 2) {  // ATen adds two low-precision values in float32 and rounds once
    combine(out, parts[0], parts[1], op);
    return;
  }
  const bool widen = is_low(out.scalar_type()) && op == ReduceOp::kSum;
  const at::Tensor running = at::empty({std::min(count, kBlock)},
                                       out.options().dtype(widen ? at::kFloat : out.scalar_type()));
  std::vector<at::Tensor> pieces(parts.size());
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    for (size_t i = 0; i < parts.size(); ++i) pieces[i] = parts[i].narrow(0, begin, length);
    reduce_block(out.narrow(0, begin, length), pieces, op, running.narrow(0, 0, length));
  }
}

}  // namespace shardproof
