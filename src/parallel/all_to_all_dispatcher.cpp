#include "parallel/all_to_all_dispatcher.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <numeric>

#include "base/check.h"

namespace shardproof {
namespace {

using Counts = std::vector<int64_t>;

int64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Rows that go to and come from each rank.
struct RowExchange {
  Counts send, receive;
  CommPtr group;
  Site site;

  at::Tensor run(const at::Tensor& rows) const {
    const int64_t width = rows.size(1);
    Counts sent = send;
    Counts received = receive;
    for (int64_t& count : sent) count *= width;
    for (int64_t& count : received) count *= width;
    at::Tensor out = at::empty({sum(receive), width}, rows.options());
    group->all_to_all(out.view({-1}), received, rows.reshape({rows.numel()}), sent, site).wait();
    return out;
  }
  RowExchange reversed() const {
    return {receive, send, group, {site.module, site.value, "backward"}};
  }
};

struct ExchangeBackward final : torch::autograd::Node {
  RowExchange exchange;
  int64_t width = 0;
  at::TensorOptions options;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    const at::Tensor grad =
        grads.at(0).defined() ? grads[0] : at::zeros({sum(exchange.send), width}, options);
    return {exchange.run(grad)};
  }
  std::string name() const override { return "ExchangeBackward"; }
};

at::Tensor exchange_rows(const at::Tensor& rows, const RowExchange& exchange) {
  at::Tensor result;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    result = exchange.run(rows);
  }
  if (at::GradMode::is_enabled() && rows.requires_grad()) {
    auto node = c10::make_intrusive<ExchangeBackward>();
    node->exchange = exchange.reversed();
    node->width = rows.size(1);
    node->options = result.options();
    node->set_next_edges(torch::autograd::collect_next_edges(rows));
    torch::autograd::set_history(result, node);
  }
  return result;
}

}  // namespace

AllToAllDispatcher::AllToAllDispatcher(CommPtr group, const Cut& cut, int64_t experts,
                                       std::string module)
    : group_(std::move(group)), module_(std::move(module)) {
  int64_t next = 0;
  for (int64_t c = 0; c < group_->size(); ++c) {
    const Intervals held = cut_intervals(cut, experts, group_->size(), c);
    held_by_.push_back(total_size(held));
    SP_EXPECT(held.empty() || held.front().begin == next,
              "{}: the experts of rank {} do not follow those of the ranks before it", module_, c);
    next += held_by_.back();
  }
}

at::Tensor AllToAllDispatcher::combine(const Routes& routes, const RunExperts& run) {
  const int64_t top_k = routes.experts.size(1);
  const int64_t hidden = routes.tokens.size(1);
  const at::Tensor flat = routes.experts.reshape({routes.experts.numel()});
  // In the order of experts, and so of ranks; those of one expert in the order of tokens.
  const at::Tensor order = at::argsort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor by_expert = at::bincount(flat, /*weights=*/{}, sum(held_by_));

  // How many rows each rank will send for each of the experts here.
  const auto rank = static_cast<size_t>(group_->rank());
  const Counts counts_back(held_by_.size(), held_by_[rank]);
  const at::Tensor arriving =
      at::empty({static_cast<int64_t>(held_by_.size()), held_by_[rank]}, by_expert.options());
  group_
      ->all_to_all(arriving.view({-1}), counts_back, by_expert, held_by_,
                   {module_, "counts", "forward"})
      .wait();

  RowExchange there{{}, {}, group_, {module_, "rows", "forward"}};
  int64_t first = 0;
  for (size_t c = 0; c < held_by_.size(); ++c) {
    there.send.push_back(by_expert.narrow(0, first, held_by_[c]).sum().item<int64_t>());
    there.receive.push_back(arriving[static_cast<int64_t>(c)].sum().item<int64_t>());
    first += held_by_[c];
  }
  const int64_t own = std::accumulate(held_by_.begin(), held_by_.begin() + rank, int64_t{0});
  const at::Tensor own_ids = at::arange(own, own + held_by_[rank], flat.options())
                                 .repeat({static_cast<int64_t>(held_by_.size())});
  const at::Tensor ids = own_ids.repeat_interleave(arriving.view({-1}));

  const at::Tensor tokens = at::div(order, top_k, "floor");
  const at::Tensor rows = exchange_rows(routes.tokens.index_select(0, tokens), there);
  const at::Tensor results = run(rows, ids);
  RowExchange back = there.reversed();
  back.site = {module_, "results", "forward"};
  const at::Tensor returned = exchange_rows(results, back);

  // Back into the order of routes, where the weights are.
  const at::Tensor place =
      at::empty_like(order).index_copy_(0, order, at::arange(order.numel(), order.options()));
  const at::Tensor by_route =
      returned.index_select(0, place).view({routes.experts.size(0), top_k, hidden});
  return (by_route * routes.weights.unsqueeze(-1)).sum(1);
}

}  // namespace shardproof
