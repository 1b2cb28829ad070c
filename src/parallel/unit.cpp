#include "parallel/unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/Resize.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace shardproof {

namespace {

int64_t product(const std::vector<int64_t>& shape, size_t from) {
  return std::accumulate(shape.begin() + from, shape.end(), int64_t{1}, std::multiplies<>());
}

// The view without autograd and without its version counter: filling it again is no modification
// that autograd has to know of.
at::Tensor raw(const at::Tensor& view) {
  return static_cast<const torch::autograd::Variable&>(view).variable_data();
}

void resize_storage(const at::Tensor& view, int64_t bytes) {
  at::native::resize_bytes_nocuda(view.storage(), bytes);
}

// `flat` cut into tensors of these shapes.
std::vector<at::Tensor> unflatten(const at::Tensor& flat,
                                  const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<at::Tensor> parts;
  int64_t offset = 0;
  for (const auto& shape : shapes) {
    const int64_t count = product(shape, 0);
    parts.push_back(flat.narrow(0, offset, count).view(shape));
    offset += count;
  }
  return parts;
}

at::Tensor flatten(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

// One all-reduce for all of them, in place of each.
void all_reduce_together(std::vector<at::Tensor>& tensors, const std::vector<size_t>& which,
                         Communicator& comm, const Site& site) {
  std::vector<at::Tensor> chosen;
  std::vector<std::vector<int64_t>> shapes;
  for (const size_t i : which) {
    chosen.push_back(tensors[i]);
    shapes.push_back(tensors[i].sizes().vec());
  }
  const at::Tensor flat = flatten(chosen);
  comm.all_reduce(flat, flat, ReduceOp::kSum, site).wait();
  const auto parts = unflatten(flat, shapes);
  for (size_t k = 0; k < which.size(); ++k) tensors[which[k]] = parts[k];
}

}  // namespace

class Unit::GradHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  GradHook(std::weak_ptr<Unit> unit, size_t index) : unit_(std::move(unit)), index_(index) {}
  void operator()(const torch::autograd::Variable&) override {
    if (const auto unit = unit_.lock()) unit->arrived(index_);
  }

 private:
  std::weak_ptr<Unit> unit_;  // weak: unit -> parameter -> view -> this hook
  size_t index_;
};

Unit::Unit(ResolvedUnit resolved, UnitComms comms, std::vector<Item> items)
    : resolved_(std::move(resolved)),
      comms_(std::move(comms)),
      items_(std::move(items)),
      arrived_grads_(items_.size()) {
  for (const Item& item : items_) expected_ += item.parameter->requires_grad ? 1 : 0;
}

void Unit::attach() {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < items_.size(); ++i) {
    const at::Tensor& view = items_[i].parameter->view();
    if (sharded()) resize_storage(view, 0);
    if (items_[i].parameter->requires_grad) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          view, std::make_unique<GradHook>(weak_from_this(), i));
    }
  }
}

int64_t Unit::row_size(const Item& item) const { return product(item.shape, 1); }

void Unit::gather(const char* phase) {
  if (!sharded() || gathered_) return;
  at::NoGradGuard no_grad;
  const auto ranks = static_cast<size_t>(comms_.fsdp->size());
  std::vector<int64_t> counts(ranks, 0);
  std::vector<at::Tensor> kept;
  for (const Item& item : items_) {
    for (size_t c = 0; c < ranks; ++c) counts[c] += item.rows[c] * row_size(item);
    kept.push_back(item.parameter->kept());
  }
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  at::Tensor received = at::empty({total}, kept.front().options());
  comms_.fsdp->all_gather(received, flatten(kept), counts, {resolved_.path, "parameters", phase})
      .wait();

  for (const Item& item : items_) {
    const at::Tensor& view = item.parameter->view();
    resize_storage(view, view.numel() * view.element_size());
  }
  int64_t offset = 0;
  std::vector<int64_t> filled(items_.size(), 0);  // rows of each view
  for (size_t c = 0; c < ranks; ++c) {
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      const int64_t count = item.rows[c] * row_size(item);
      std::vector<int64_t> part_shape = item.shape;
      part_shape[0] = item.rows[c];
      raw(item.parameter->view())
          .narrow(0, filled[i], item.rows[c])
          .copy_(received.narrow(0, offset, count).view(part_shape));
      filled[i] += item.rows[c];
      offset += count;
    }
  }
  fill_masks();
  gathered_ = true;
}

// A parameter that is an addend inside is whole on coordinate 0 and zero elsewhere.
void Unit::fill_masks() {
  for (const Item& item : items_) {
    if (item.edge.masks(item.axis.coordinate)) raw(item.parameter->view()).zero_();
  }
}

void Unit::free() {
  if (!sharded() || !gathered_) return;
  for (const Item& item : items_) resize_storage(item.parameter->view(), 0);
  gathered_ = false;
}

void Unit::before_forward() { gather("forward"); }

void Unit::after_forward(bool backward_follows) {
  if (resolved_.free_after_forward || !backward_follows) free();
}

void Unit::before_backward() { gather("backward"); }

void Unit::invalidate() {
  free();
  for (at::Tensor& slot : arrived_grads_) slot.reset();
  arrival_order_.clear();
}

void Unit::arrived(size_t index) {
  at::NoGradGuard no_grad;
  const at::Tensor& view = items_[index].parameter->view();
  at::Tensor& grad = view.mutable_grad();
  at::Tensor& slot = arrived_grads_[index];
  if (!slot.defined()) arrival_order_.push_back(index);
  slot = slot.defined() ? slot + grad : grad;
  grad.reset();
  if (arrival_order_.size() == expected_) {
    free();  // every use of the views is done: their memory serves the reduction
    reduce();
  }
}

void Unit::finish_backward() {
  free();
  if (!arrival_order_.empty()) reduce();
}

std::vector<at::Tensor> Unit::reduced_over_data(const std::vector<size_t>& indices) {
  std::vector<at::Tensor> grads;
  for (const size_t i : indices) grads.push_back(arrived_grads_[i]);
  if (!comms_.fsdp && !comms_.dp_replicate) return grads;
  const Site site{resolved_.path, "gradients", "backward"};

  at::Tensor flat;
  std::vector<std::vector<int64_t>> shapes;
  if (sharded()) {
    const auto ranks = static_cast<size_t>(comms_.fsdp->size());
    std::vector<int64_t> counts(ranks, 0);
    std::vector<at::Tensor> parts;
    std::vector<int64_t> begin(indices.size(), 0);
    for (size_t c = 0; c < ranks; ++c) {
      for (size_t k = 0; k < indices.size(); ++k) {
        const Item& item = items_[indices[k]];
        parts.push_back(grads[k].narrow(0, begin[k], item.rows[c]));
        begin[k] += item.rows[c];
        counts[c] += item.rows[c] * row_size(item);
      }
    }
    for (const size_t i : indices) shapes.push_back(items_[i].parameter->kept().sizes().vec());
    flat = at::empty({counts[comms_.fsdp_coordinate]}, grads.front().options());
    comms_.fsdp->reduce_scatter(flat, flatten(parts), counts, ReduceOp::kSum, site).wait();
  } else {
    for (const at::Tensor& grad : grads) shapes.push_back(grad.sizes().vec());
    flat = flatten(grads);
  }
  grads.clear();
  for (const size_t i : indices) arrived_grads_[i].reset();
  if (comms_.dp_replicate) comms_.dp_replicate->all_reduce(flat, flat, ReduceOp::kSum, site).wait();
  return unflatten(flat, shapes);
}

void Unit::reduce() {
  at::NoGradGuard no_grad;
  std::vector<size_t> indices = arrival_order_;
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  // Where only some sections are copies, ranks of a block hold different rows, and fsdp cuts them
  // differently: those are summed before fsdp cuts them.
  for (const size_t i : indices) {
    const Item& item = items_[i];
    if (!item.sums_in_part()) continue;
    arrived_grads_[i] = convert(arrived_grads_[i], item.edge.grad_inside, item.edge.grad_outside,
                                item.axis, {resolved_.path, "copies", "backward"});
  }
  std::vector<at::Tensor> grads = reduced_over_data(indices);

  // What is left of tensor parallelism are sums, which do not mind that fsdp has cut the parts: one
  // message for each communicator that they go over.
  std::vector<std::pair<CommPtr, std::vector<size_t>>> sums;
  for (size_t k = 0; k < indices.size(); ++k) {
    const Item& item = items_[indices[k]];
    const Operation operation =
        plan_conversion(item.edge.grad_inside, item.edge.grad_outside, item.axis.size);
    if (operation == Operation::kNone || item.sums_in_part()) continue;
    SP_EXPECT(operation == Operation::kAllReduce || operation == Operation::kBlockSum,
              "the gradient of {} needs {}, which units do not do", item.parameter->name(),
              to_string(operation));
    const CommPtr& comm = operation == Operation::kAllReduce ? item.axis.comm : item.axis.block;
    SP_EXPECT(comm, "the gradient of {} needs {}, but there is no communicator for it",
              item.parameter->name(), to_string(operation));
    auto group =
        std::find_if(sums.begin(), sums.end(), [&](const auto& g) { return g.first == comm; });
    if (group == sums.end()) group = sums.insert(sums.end(), {comm, {}});
    group->second.push_back(k);
  }
  for (const auto& [comm, which] : sums) {
    all_reduce_together(grads, which, *comm, {resolved_.path, "copies", "backward"});
  }

  for (size_t k = 0; k < indices.size(); ++k) {
    at::Tensor& grad = items_[indices[k]].parameter->grad;
    grad = grad.defined() ? grad.add_(grads[k]) : grads[k];
  }
  for (const size_t i : arrival_order_) {
    Parameter& parameter = *items_[i].parameter;
    if (parameter.after_grad) parameter.after_grad(parameter);
  }
  for (at::Tensor& slot : arrived_grads_) slot.reset();
  arrival_order_.clear();
}

}  // namespace shardproof
