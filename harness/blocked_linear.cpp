#include "harness/blocked_linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "base/check.h"

namespace shardproof {
namespace {

at::Tensor as_rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

at::Tensor cut(const at::Tensor& tensor, int64_t dim, const Interval& block) {
  return tensor.narrow(dim, block.begin, block.size());
}

template <class Part>
at::Tensor sum_of(const Blocks& blocks, const Part& part) {
  SP_EXPECT(!blocks.empty(), "a sum of no blocks");
  at::Tensor sum = part(blocks.front());
  for (size_t i = 1; i < blocks.size(); ++i) sum = sum + part(blocks[i]);
  return sum;
}

struct BlockedLinearBackward final : torch::autograd::Node {
  at::Tensor input, weight;  // [rows, in], [out, in]
  std::vector<int64_t> input_shape;
  LinearBlocks blocks;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    torch::autograd::variable_list results(3);
    if (!grads.at(0).defined()) return results;
    const at::NoGradGuard no_grad;
    const at::Tensor grad = as_rows(grads[0]);
    if (task_should_compute_output(0))
      results[0] = sum_of(blocks.out, [&](const Interval& block) {
                     return cut(grad, 1, block).mm(cut(weight, 0, block));
                   }).reshape(input_shape);
    if (task_should_compute_output(1))
      results[1] = sum_of(blocks.rows, [&](const Interval& block) {
        return cut(grad, 0, block).t().mm(cut(input, 0, block));
      });
    if (task_should_compute_output(2))
      results[2] =
          sum_of(blocks.rows, [&](const Interval& block) { return cut(grad, 0, block).sum(0); });
    return results;
  }
  std::string name() const override { return "BlockedLinearBackward"; }
};

}  // namespace

at::Tensor blocked_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const LinearBlocks& blocks) {
  std::vector<int64_t> shape = input.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor rows = as_rows(input.detach());
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = sum_of(blocks.in, [&](const Interval& block) {
      return cut(rows, 1, block).mm(cut(weight, 1, block).t());
    });
    if (bias.defined()) output = output + bias;
    output = output.reshape(shape);
  }
  if (!at::GradMode::is_enabled()) return output;
  auto node = c10::make_intrusive<BlockedLinearBackward>();
  node->input = rows;
  node->weight = weight.detach();
  node->input_shape = input.sizes().vec();
  node->blocks = blocks;
  node->set_next_edges(torch::autograd::collect_next_edges(input, weight, bias));
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace shardproof
