// The contract of a communicator, on one screen.
//
// A communicator joins `size()` ranks. Every collective is started by all of its ranks in the same
// order and returns a Work at once; Works may be waited for in any order. Buffers given to a call
// must live, and inputs must not change, until its Work is done. Counts are in elements, per rank,
// and may be uneven or zero. Tensors may be of any dtype and non-contiguous; they are read and
// written in their logical (row-major) element order. At size 1 every call is a local copy or
// nothing.
//
// Reductions add in rank order with float32 accumulation for bfloat16 / float16, so results are
// bit-equal on all ranks and from run to run.
//
// Waiting has a deadline (TimeoutError) and ends with AbortedError as soon as any rank of the
// *domain* calls abort(). A domain is a communicator made by new_domain() and all that is split
// from it; after an abort it can only be dropped. Every call names its site, which recorders and
// messages show.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>

namespace shardproof {

enum class ReduceOp { kSum, kMax, kMin };  // bool: kSum and kMax are "or", kMin is "and"

// Where in the model a collective belongs: fixed when the model is parallelized, for records and
// errors.
struct Site {
  std::string module;  // dotted path, "" = outside any module
  std::string value;   // the input, output or parameter that moves
  std::string phase;   // "forward", "backward", "step", "setup", ...
};

// The handle of a started operation. Copies share it. A default Work is done.
class Work {
 public:
  class State {  // what a backend provides
   public:
    virtual ~State() = default;
    // Returns when done; throws TimeoutError or AbortedError. Called at most once, by Work::wait.
    virtual void wait() = 0;
  };

  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Returns when the operation is done and its outputs are written. Again: no-op.
  void wait();

 private:
  std::shared_ptr<State> state_;
};

class Communicator {
 public:
  using Counts = std::span<const int64_t>;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The mesh axis (or other name) that records show: "tp", "fsdp", "world", ...
  virtual const std::string& name() const = 0;

  // out (may be `in` itself) = reduction of all ranks' `in`.
  virtual Work all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) = 0;
  // out = concatenation by rank; rank r gives counts[r] elements.
  virtual Work all_gather(at::Tensor out, at::Tensor in, Counts counts, const Site& site) = 0;
  // in = concatenation of size() parts of counts[r] elements; out = the reduced part of this rank.
  virtual Work reduce_scatter(at::Tensor out, at::Tensor in, Counts counts, ReduceOp op,
                              const Site& site) = 0;
  // in = parts for each rank (send_counts), out = parts from each rank (recv_counts).
  virtual Work all_to_all(at::Tensor out, Counts recv_counts, at::Tensor in, Counts send_counts,
                          const Site& site) = 0;
  virtual Work broadcast(at::Tensor tensor, int root, const Site& site) = 0;
  // `out` is read on the root only (elsewhere it may be undefined), in scatter `in` likewise.
  virtual Work gather(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) = 0;
  virtual Work scatter(at::Tensor out, at::Tensor in, Counts counts, int root,
                       const Site& site) = 0;
  // Point to point; messages between two ranks with one tag arrive in order.
  virtual Work send(at::Tensor tensor, int to, int tag, const Site& site) = 0;
  virtual Work recv(at::Tensor tensor, int from, int tag, const Site& site) = 0;
  virtual Work barrier(const Site& site) = 0;

  // Collective. Ranks with one color join, ordered by (key, rank); a negative color gives nullptr.
  virtual std::shared_ptr<Communicator> split(int color, int key, std::string name) = 0;
  // Collective. The same ranks in a new abort domain: what to go on with after an abort, made from
  // a communicator whose own domain was not aborted.
  virtual std::shared_ptr<Communicator> new_domain(std::string name) = 0;

  // Wakes everyone who waits in this domain, here and on all ranks, now and from now on, with
  // AbortedError{this rank, reason}. Not collective; never blocks; the first reason wins.
  virtual void abort(const std::string& reason) = 0;
  // Tells all ranks of the domain that this rank works alone for up to `duration`: their deadlines
  // are put off until then. Not collective; never blocks.
  virtual void announce(std::chrono::milliseconds duration, const std::string& what) = 0;
  // How long a wait may take in this domain, 120 s at first. Local; set it alike on all ranks.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;
};

using CommPtr = std::shared_ptr<Communicator>;

}  // namespace shardproof
