// The operations of MessageCommunicator.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <numeric>
#include <utility>

#include "base/check.h"
#include "comm/message_communicator.h"
#include "comm/reduce.h"

namespace shardproof {

namespace {

using After = Operation::After;
using BelowAutograd = at::AutoDispatchBelowADInplaceOrView;

// Below this an all_reduce is bound by the number of its phases, not by its volume.
constexpr int64_t kOnePhaseElements = 4096;

int64_t total(Communicator::Counts counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void expect_tensor(const at::Tensor& tensor, const char* what) {
  SP_EXPECT(tensor.defined(), "the {} tensor is undefined: give one on this rank", what);
  SP_EXPECT(tensor.is_cpu(), "the {} tensor is on {}: this backend moves CPU tensors", what,
            tensor.device().str());
}

void expect_alike(const at::Tensor& out, const at::Tensor& in) {
  expect_tensor(out, "output");
  expect_tensor(in, "input");
  SP_EXPECT(out.scalar_type() == in.scalar_type(), "output is {} but input is {}: convert before",
            toString(out.scalar_type()), toString(in.scalar_type()));
}

std::vector<int64_t> even_counts(int64_t elements, int size) {
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < size; ++rank) {
    counts.push_back(elements * (rank + 1) / size - elements * rank / size);
  }
  return counts;
}

// The input as it can be sent while `out` is being written: a copy where the two share memory.
at::Tensor apart_from(const at::Tensor& out, at::Tensor in) {
  return overlap(out, in) ? in.clone() : in;
}

void store_at_end(Operation& operation, const FlatOutput& out) {
  if (!out.staged_for.defined()) return;
  operation.then(After::kReceives, [out](Operation&) { out.store(); });
}

}  // namespace

void MessageCommunicator::expect_counts(Counts counts, const at::Tensor& whole,
                                        const at::Tensor& part) const {
  SP_EXPECT(static_cast<int>(counts.size()) == size(),
            "{} counts for '{}', which has {} ranks: give one a rank", counts.size(), name_,
            size());
  for (const int64_t count : counts) SP_EXPECT(count >= 0, "a count is {}", count);
  if (whole.defined()) {
    SP_EXPECT(total(counts) == whole.numel(),
              "the counts on '{}' add up to {} elements but the tensor has {}", name_,
              total(counts), whole.numel());
  }
  if (part.defined()) {
    const int64_t count = counts[static_cast<size_t>(rank_)];
    SP_EXPECT(count == part.numel(), "rank {} of '{}' counts {} elements but its tensor has {}",
              rank_, name_, count, part.numel());
  }
}

Work MessageCommunicator::all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) {
  expect_alike(out, in);
  SP_EXPECT(out.numel() == in.numel(), "all_reduce of {} elements into {}", in.numel(),
            out.numel());
  const BelowAutograd guard;
  const auto operation = begin("all_reduce", site);
  const Link link = next_link();
  const FlatOutput to(out);
  at::Tensor from = flat_input(in);
  if (size() == 1) {
    copy_flat(to.flat, from);
    to.store();
    return Work();
  }
  if (!same_place(to.flat, from)) from = apart_from(to.flat, from);

  if (from.numel() < kOnePhaseElements) {
    const at::Tensor scratch = at::empty({size() - 1, from.numel()}, from.options());
    std::vector<at::Tensor> parts;
    for (int rank = 0, slot = 0; rank < size(); ++rank) {
      parts.push_back(rank == rank_ ? from : scratch.select(0, slot++));
    }
    for (const int peer : link.peers()) {
      link.send(*operation, peer, from);
      link.receive(*operation, peer, parts[static_cast<size_t>(peer)]);
    }
    operation->then(After::kAll, [=](Operation&) { reduce_in_order(to.flat, parts, op); });
  } else {
    const auto counts = even_counts(from.numel(), size());
    const Parts slices(to.flat, counts);
    reduce_parts(*operation, link, Parts(from, counts), slices[rank_], op);
    // In place, the slices to be received are those that were sent: they must have left.
    operation->then(same_place(to.flat, from) ? After::kAll : After::kReceives,
                    [=, rank = rank_](Operation& self) {
                      for (const int peer : link.peers()) {
                        link.send(self, peer, slices[rank]);
                        link.receive(self, peer, slices[peer]);
                      }
                    });
  }
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::all_gather(at::Tensor out, at::Tensor in, Counts counts,
                                     const Site& site) {
  expect_alike(out, in);
  expect_counts(counts, out, in);
  const BelowAutograd guard;
  const auto operation = begin("all_gather", site);
  const Link link = next_link();
  const FlatOutput to(out);
  const Parts parts(to.flat, counts);
  at::Tensor from = flat_input(in);
  if (!same_place(parts[rank_], from)) from = apart_from(to.flat, from);
  copy_flat(parts[rank_], from);
  for (const int peer : link.peers()) {
    link.send(*operation, peer, from);
    link.receive(*operation, peer, parts[peer]);
  }
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::reduce_scatter(at::Tensor out, at::Tensor in, Counts counts, ReduceOp op,
                                         const Site& site) {
  expect_alike(out, in);
  expect_counts(counts, in, out);
  const BelowAutograd guard;
  const auto operation = begin("reduce_scatter", site);
  const Link link = next_link();
  const FlatOutput to(out);
  Parts parts(flat_input(in), counts);
  if (!same_place(to.flat, parts[rank_])) parts = Parts(apart_from(to.flat, parts.flat()), counts);
  if (size() == 1) {
    copy_flat(to.flat, parts[rank_]);
    to.store();
    return Work();
  }
  reduce_parts(*operation, link, parts, to.flat, op);
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::all_to_all(at::Tensor out, Counts recv_counts, at::Tensor in,
                                     Counts send_counts, const Site& site) {
  expect_alike(out, in);
  expect_counts(recv_counts, out, {});
  expect_counts(send_counts, in, {});
  const auto own = static_cast<size_t>(rank_);
  SP_EXPECT(recv_counts[own] == send_counts[own],
            "all_to_all on '{}': rank {} sends {} elements to itself but receives {}", name_, rank_,
            send_counts[own], recv_counts[own]);
  const BelowAutograd guard;
  const auto operation = begin("all_to_all", site);
  const Link link = next_link();
  const FlatOutput to(out);
  const Parts received(to.flat, recv_counts);
  const Parts sent(apart_from(to.flat, flat_input(in)), send_counts);
  copy_flat(received[rank_], sent[rank_]);
  for (const int peer : link.peers()) {
    link.send(*operation, peer, sent[peer]);
    link.receive(*operation, peer, received[peer]);
  }
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::broadcast(at::Tensor tensor, int root, const Site& site) {
  expect_tensor(tensor, "broadcast");
  expect_rank("root", root);
  const BelowAutograd guard;
  const auto operation = begin("broadcast", site);
  const Link link = next_link();
  if (rank_ == root) {
    const at::Tensor from = flat_input(tensor);
    for (const int peer : link.peers()) link.send(*operation, peer, from);
  } else {
    const FlatOutput to(tensor);
    link.receive(*operation, root, to.flat);
    store_at_end(*operation, to);
  }
  return started(operation);
}

Work MessageCommunicator::gather(at::Tensor out, at::Tensor in, Counts counts, int root,
                                 const Site& site) {
  expect_rank("root", root);
  expect_tensor(in, "input");
  if (rank_ == root) expect_alike(out, in);
  expect_counts(counts, rank_ == root ? out : at::Tensor(), in);
  const BelowAutograd guard;
  const auto operation = begin("gather", site);
  const Link link = next_link();
  at::Tensor from = flat_input(in);
  if (rank_ == root) {
    const FlatOutput to(out);
    const Parts parts(to.flat, counts);
    copy_flat(parts[rank_], from);
    for (const int peer : link.peers()) link.receive(*operation, peer, parts[peer]);
    store_at_end(*operation, to);
  } else {
    link.send(*operation, root, from);
  }
  return started(operation);
}

Work MessageCommunicator::scatter(at::Tensor out, at::Tensor in, Counts counts, int root,
                                  const Site& site) {
  expect_rank("root", root);
  expect_tensor(out, "output");
  if (rank_ == root) expect_alike(out, in);
  expect_counts(counts, rank_ == root ? in : at::Tensor(), out);
  const BelowAutograd guard;
  const auto operation = begin("scatter", site);
  const Link link = next_link();
  const FlatOutput to(out);
  if (rank_ == root) {
    Parts parts(flat_input(in), counts);
    if (!same_place(to.flat, parts[rank_]))
      parts = Parts(apart_from(to.flat, parts.flat()), counts);
    copy_flat(to.flat, parts[rank_]);
    for (const int peer : link.peers()) link.send(*operation, peer, parts[peer]);
  } else {
    link.receive(*operation, root, to.flat);
  }
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::send(at::Tensor tensor, int to, int tag, const Site& site) {
  expect_rank("receiver", to);
  expect_tensor(tensor, "sent");
  const BelowAutograd guard;
  const auto operation = begin("send", site);
  user_link(tag).send(*operation, to, flat_input(tensor));
  return started(operation);
}

Work MessageCommunicator::recv(at::Tensor tensor, int from, int tag, const Site& site) {
  expect_rank("sender", from);
  expect_tensor(tensor, "received");
  const BelowAutograd guard;
  const auto operation = begin("recv", site);
  const FlatOutput to(tensor);
  user_link(tag).receive(*operation, from, to.flat);
  store_at_end(*operation, to);
  return started(operation);
}

Work MessageCommunicator::barrier(const Site& site) {
  const BelowAutograd guard;
  const auto operation = begin("barrier", site);
  const Link link = next_link();
  const at::Tensor token = at::zeros({size()}, at::kByte);
  for (const int peer : link.peers()) {
    link.send(*operation, peer, token.narrow(0, rank_, 1));
    link.receive(*operation, peer, token.narrow(0, peer, 1));
  }
  return started(operation);
}

}  // namespace shardproof
