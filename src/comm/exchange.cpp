#include "comm/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "comm/reduce.h"

namespace shardproof {

namespace {

constexpr int64_t kScratchBytes = 4 << 20;
constexpr int64_t kLeastRound = 1024;  // elements

Buffer buffer_of(const at::Tensor& flat) {
  // const: reading the pointer of an input must not mark it as written.
  return {const_cast<void*>(flat.const_data_ptr()), flat.nbytes(), flat};
}

struct Rounds {
  Link link;
  at::Tensor own;
  at::Tensor out;
  at::Tensor scratch;
  int64_t round = 0;  // elements a round and peer
  ReduceOp op = ReduceOp::kSum;

  std::vector<at::Tensor> pieces(int64_t begin, int64_t length) const {
    std::vector<at::Tensor> result;
    for (int rank = 0, slot = 0; rank < link.size(); ++rank) {
      result.push_back(rank == link.rank ? own.narrow(0, begin, length)
                                         : scratch.narrow(0, round * slot++, length));
    }
    return result;
  }
};

void reduce_round(Operation& operation, const std::shared_ptr<const Rounds>& rounds,
                  int64_t begin) {
  const int64_t length = std::min(rounds->round, rounds->out.numel() - begin);
  if (length <= 0) return;
  const auto pieces = rounds->pieces(begin, length);
  for (const int peer : rounds->link.peers()) {
    rounds->link.receive(operation, peer, pieces[static_cast<size_t>(peer)]);
  }
  operation.then_first(Operation::After::kReceives, [=](Operation& self) {
    reduce_in_order(rounds->out.narrow(0, begin, length), pieces, rounds->op);
    reduce_round(self, rounds, begin + length);
  });
}

}  // namespace

at::Tensor flat_input(const at::Tensor& in) { return in.contiguous().view({in.numel()}); }

FlatOutput::FlatOutput(const at::Tensor& out) {
  if (out.is_contiguous()) {
    flat = out.view({out.numel()});
  } else {
    flat = at::empty({out.numel()}, out.options());
    staged_for = out;
  }
}

void FlatOutput::store() const {
  if (staged_for.defined()) staged_for.copy_(flat.view(staged_for.sizes()));
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const auto* a_begin = static_cast<const std::byte*>(a.const_data_ptr());
  const auto* b_begin = static_cast<const std::byte*>(b.const_data_ptr());
  return a_begin < b_begin + b.nbytes() && b_begin < a_begin + a.nbytes();
}

bool same_place(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.nbytes() == b.nbytes();
}

void copy_flat(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0 || same_place(to, from)) return;
  std::memmove(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
}

Parts::Parts(at::Tensor flat, std::span<const int64_t> counts)
    : flat_(std::move(flat)), counts_(counts.begin(), counts.end()) {
  int64_t offset = 0;
  for (const int64_t count : counts_) {
    offsets_.push_back(offset);
    offset += count;
  }
  SP_ASSERT(offset == flat_.numel(), "parts of {} elements in all for a tensor of {}", offset,
            flat_.numel());
}

at::Tensor Parts::operator[](int rank) const {
  const auto at = static_cast<size_t>(rank);
  return flat_.narrow(0, offsets_[at], counts_[at]);
}

std::vector<int> Link::peers() const {
  std::vector<int> result;
  for (int step = 1; step < size(); ++step) result.push_back((rank + step) % size());
  return result;
}

void Link::send(Operation& operation, int to, const at::Tensor& flat) const {
  if (flat.numel() == 0) return;
  operation.add_send(
      to, transport->post_send((*members)[static_cast<size_t>(to)], tag, buffer_of(flat)));
}

void Link::receive(Operation& operation, int from, const at::Tensor& flat) const {
  if (flat.numel() == 0) return;
  operation.add_receive(
      from, transport->post_recv((*members)[static_cast<size_t>(from)], tag, buffer_of(flat)));
}

void reduce_parts(Operation& operation, const Link& link, const Parts& in, const at::Tensor& out,
                  ReduceOp op) {
  const int64_t peers = std::max(1, link.size() - 1);
  // The same on all ranks: it is also the size of the messages.
  const int64_t round = std::max<int64_t>(
      kLeastRound, kScratchBytes / (peers * static_cast<int64_t>(out.element_size())));
  for (const int peer : link.peers()) {
    const at::Tensor part = in[peer];
    for (int64_t begin = 0; begin < part.numel(); begin += round) {
      link.send(operation, peer, part.narrow(0, begin, std::min(round, part.numel() - begin)));
    }
  }
  auto rounds = std::make_shared<Rounds>();
  rounds->link = link;
  rounds->own = in[link.rank];
  rounds->out = out;
  rounds->round = std::min(round, out.numel());
  rounds->scratch = at::empty({(link.size() - 1) * rounds->round}, out.options());
  rounds->op = op;
  reduce_round(operation, rounds, 0);
}

}  // namespace shardproof
