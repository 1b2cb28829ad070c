// The bricks that collectives are put together from: flat views of tensors, and the messages of one
// operation between the ranks of one communicator.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/operation.h"
#include "comm/transport.h"

namespace shardproof {

// The elements of `in` in logical order, one-dimensional and contiguous: a view, or else a copy.
at::Tensor flat_input(const at::Tensor& in);

// One-dimensional contiguous room for the elements of `out`: a view, or else a buffer that store()
// copies.
struct FlatOutput {
  explicit FlatOutput(const at::Tensor& out);
  void store() const;  // once the operation is complete

  at::Tensor flat;
  at::Tensor staged_for;  // undefined for a view
};

bool overlap(const at::Tensor& a, const at::Tensor& b);  // both contiguous
bool same_place(const at::Tensor& a, const at::Tensor& b);
void copy_flat(const at::Tensor& to, const at::Tensor& from);  // may be the same place or overlap

// Parts of a flat tensor, one a rank.
class Parts {
 public:
  Parts(at::Tensor flat, std::span<const int64_t> counts);
  at::Tensor operator[](int rank) const;
  int64_t count(int rank) const { return counts_[static_cast<size_t>(rank)]; }
  const at::Tensor& flat() const { return flat_; }

 private:
  at::Tensor flat_;
  std::vector<int64_t> counts_;
  std::vector<int64_t> offsets_;
};

// Posts the messages of one operation. Peers are ranks of the communicator; no elements = no
// message.
struct Link {
  Transport* transport = nullptr;
  std::shared_ptr<const std::vector<int>> members;
  int rank = 0;
  Tag tag;

  int size() const { return static_cast<int>(members->size()); }
  // The other ranks, beginning after this one, so that not all send to the same at first.
  std::vector<int> peers() const;
  void send(Operation& operation, int to, const at::Tensor& flat) const;
  void receive(Operation& operation, int from, const at::Tensor& flat) const;
};

// Adds to `operation`: out = reduction over the ranks of their in[this rank]. Receives in rounds,
// so that scratch stays near 4 MiB whatever the sizes. `out` may be in[this rank] itself, else must
// not overlap `in`.
void reduce_parts(Operation& operation, const Link& link, const Parts& in, const at::Tensor& out,
                  ReduceOp op);

}  // namespace shardproof
