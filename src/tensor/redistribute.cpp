#include "tensor/redistribute.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <numeric>

#include "base/check.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

using Counts = std::vector<int64_t>;

int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Adds over the group of a step; `part` is this rank's input and is used up.
at::Tensor reduce(const ReduceStep& step, at::Tensor part, DeviceMesh& mesh, const Site& site) {
  const CommPtr comm = mesh.block(step.axis, step.block);
  if (step.kind == ReduceStep::Kind::kAllReduce) {
    comm->all_reduce(part, part, ReduceOp::kSum, site).wait();
    return part;
  }
  Counts counts;
  for (const Region& kept : step.parts) counts.push_back(numel(kept));
  at::Tensor packed = at::empty({total(counts)}, part.options());
  int64_t at = 0;
  for (const Region& kept : step.parts) {
    const at::Tensor place = packed.narrow(0, at, numel(kept)).view(local_shape(kept));
    copy_region({place, kept}, {part, step.input}, kept);
    at += numel(kept);
  }
  part.reset();
  at::Tensor sum = at::empty(local_shape(step.output), packed.options());
  comm->reduce_scatter(sum, packed, counts, ReduceOp::kSum, site).wait();
  return sum;
}

// The elements for each member of the group that joins `axes`.
Counts counts_of(const std::vector<Transfer>& transfers, const std::vector<std::string>& axes,
                 const DeviceMesh& mesh) {
  Counts counts(static_cast<size_t>(mesh.shape().size(axes)));
  for (const Transfer& transfer : transfers)
    counts[static_cast<size_t>(mesh.shape().coordinate(transfer.rank, axes))] +=
        numel(transfer.region);
  return counts;
}

// Calls visit(flat part, region) for each transfer, in the order of members and, for one, of the
// plan: within the group members ascend as their mesh ranks do, because `axes` are in mesh order.
template <typename Visit>
void for_each_part(const at::Tensor& flat, const std::vector<Transfer>& transfers,
                   const Visit& visit) {
  int64_t at = 0;
  for (const Transfer& transfer : transfers) {
    const int64_t elements = numel(transfer.region);
    visit(flat.narrow(0, at, elements).view(local_shape(transfer.region)), transfer.region);
    at += elements;
  }
}

void exchange(const ExchangeStep& step, const RedistributePlan& plan, const HeldTensor& from,
              const HeldTensor& to, DeviceMesh& mesh, const Site& site) {
  const CopyMode mode = plan.adds ? CopyMode::kAdd : CopyMode::kReplace;
  for (const Region& region : step.copies) copy_region(to, from, region, mode);
  if (!step.moves) return;
  const Counts send_counts = counts_of(step.sends, plan.axes, mesh);
  const Counts recv_counts = counts_of(step.receives, plan.axes, mesh);
  const at::Tensor sent = at::empty({total(send_counts)}, from.local.options());
  const at::Tensor received = at::empty({total(recv_counts)}, from.local.options());
  for_each_part(sent, step.sends, [&](const at::Tensor& part, const Region& region) {
    copy_region({part, region}, from, region);
  });
  mesh.group(plan.axes)->all_to_all(received, recv_counts, sent, send_counts, site).wait();
  for_each_part(received, step.receives, [&](const at::Tensor& part, const Region& region) {
    copy_region(to, {part, region}, region, mode);
  });
}

struct RedistributeBackward final : public torch::autograd::Node {
  std::function<at::Tensor(at::Tensor)> convert;
  std::vector<int64_t> target_shape;
  at::TensorOptions options;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    at::NoGradGuard no_grad;
    at::Tensor gradient = gradients[0].defined() ? gradients[0] : at::zeros(target_shape, options);
    return {convert(std::move(gradient))};
  }
  std::string name() const override { return "RedistributeBackward"; }
};

RedistributePlan plan_for(const at::Tensor& local, const std::vector<int64_t>& shape,
                          const Placements& source, const Placements& target,
                          const DeviceMesh& mesh) {
  return plan_redistribute({.shape = shape,
                            .source = source,
                            .target = target,
                            .mesh = mesh.shape(),
                            .rank = mesh.rank(),
                            .element_bytes = static_cast<int64_t>(local.element_size())});
}

}  // namespace

void prepare_redistribute(const RedistributePlan& plan, DeviceMesh& mesh) {
  if (!plan.axes.empty()) mesh.group(plan.axes);
  for (const ReduceGroup& group : plan.reduce_groups) mesh.block(group.axis, group.block);
}

at::Tensor run_redistribute(const RedistributePlan& plan, const at::Tensor& given, DeviceMesh& mesh,
                            const Site& site) {
  at::NoGradGuard no_grad;
  SP_EXPECT(given.sizes() == at::IntArrayRef(local_shape(plan.source)),
            "the local tensor has the shape [{}] but the source layout gives rank {} [{}]; give "
            "the part that "
            "the layout says",
            fmt::join(given.sizes(), ", "), mesh.rank(), fmt::join(local_shape(plan.source), ", "));
  if (plan.identity) return given;
  prepare_redistribute(plan, mesh);
  const at::Tensor local = given.detach();
  const auto shape = local_shape(plan.target);
  const at::Tensor result =
      plan.zero_filled ? at::zeros(shape, local.options()) : at::empty(shape, local.options());
  for (const Slab& slab : plan.slabs) {
    at::Tensor part = local;
    const Region* held = &plan.source;
    for (const ReduceStep& step : slab.reductions) {
      // The first works on a copy of its slab, later ones on what the one before left, or less of
      // it.
      if (held == &plan.source || *held != step.input) part = take(part, *held, step.input);
      part = reduce(step, std::move(part), mesh, site);
      held = &step.output;
    }
    const HeldTensor from{part, *held};
    for (const ExchangeStep& step : slab.exchanges)
      exchange(step, plan, from, {result, plan.target}, mesh, site);
  }
  return result;
}

Placements gradient_of(const Placements& placements) {
  Placements result;
  for (const auto& [axis, placement] : placements)
    if (placement.is_shard()) result.push_back({axis, shard(placement.dim, placement.cut)});
  return result;
}

RedistributeEdge plain_edge(Placements source, Placements target) {
  Placements grad_of_target = gradient_of(target);
  Placements grad_of_source = gradient_of(source);
  return {std::move(source), std::move(target), std::move(grad_of_target),
          std::move(grad_of_source)};
}

at::Tensor redistribute(const at::Tensor& local, const std::vector<int64_t>& shape,
                        const RedistributeEdge& edge, const MeshPtr& mesh, const Site& site) {
  const RedistributePlan plan = plan_for(local, shape, edge.source, edge.target, *mesh);
  at::Tensor result = run_redistribute(plan, local, *mesh, site);
  if (!at::GradMode::is_enabled() || !local.requires_grad()) return result;
  if (plan.identity) result = result.detach();
  auto node = c10::make_intrusive<RedistributeBackward>();
  node->target_shape = local_shape(plan.target);
  node->options = local.options().requires_grad(false);
  Site backward = site;
  backward.phase = "backward";
  node->convert = [shape, edge, mesh, backward](const at::Tensor& gradient) {
    return run_redistribute(
        plan_for(gradient, shape, edge.grad_of_target, edge.grad_of_source, *mesh), gradient, *mesh,
        backward);
  };
  node->set_next_edges(torch::autograd::collect_next_edges(local));
  torch::autograd::set_history(result, node);
  return result;
}

}  // namespace shardproof
