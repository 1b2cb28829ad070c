// A communicator that hands every call to another one: the base of wrappers, which override what
// they change (recording.h; faults that tests inject).
#pragma once

#include <string>
#include <utility>

#include "comm/communicator.h"

namespace shardproof {

class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(CommPtr inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }

  Work all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) override {
    return inner_->all_reduce(std::move(out), std::move(in), op, site);
  }
  Work all_gather(at::Tensor out, at::Tensor in, Counts counts, const Site& site) override {
    return inner_->all_gather(std::move(out), std::move(in), counts, site);
  }
  Work reduce_scatter(at::Tensor out, at::Tensor in, Counts counts, ReduceOp op,
                      const Site& site) override {
    return inner_->reduce_scatter(std::move(out), std::move(in), counts, op, site);
  }
  Work all_to_all(at::Tensor out, Counts recv_counts, at::Tensor in, Counts send_counts,
                  const Site& site) override {
    return inner_->all_to_all(std::move(out), recv_counts, std::move(in), send_counts, site);
  }
  Work broadcast(at::Tensor tensor, int root, const Site& site) override {
    return inner_->broadcast(std::move(tensor), root, site);
  }
  Work gather(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override {
    return inner_->gather(std::move(out), std::move(in), counts, root, site);
  }
  Work scatter(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override {
    return inner_->scatter(std::move(out), std::move(in), counts, root, site);
  }
  Work send(at::Tensor tensor, int to, int tag, const Site& site) override {
    return inner_->send(std::move(tensor), to, tag, site);
  }
  Work recv(at::Tensor tensor, int from, int tag, const Site& site) override {
    return inner_->recv(std::move(tensor), from, tag, site);
  }
  Work barrier(const Site& site) override { return inner_->barrier(site); }

  CommPtr split(int color, int key, std::string name) override {
    return wrapped(inner_->split(color, key, std::move(name)));
  }
  CommPtr new_domain(std::string name) override {
    return wrapped(inner_->new_domain(std::move(name)));
  }

  void abort(const std::string& reason) override { inner_->abort(reason); }
  void announce(std::chrono::milliseconds duration, const std::string& what) override {
    inner_->announce(duration, what);
  }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_->set_deadline(deadline); }

 protected:
  // The wrapper of a communicator that came out of split or new_domain (never nullptr).
  virtual CommPtr wrap(CommPtr made) = 0;

 private:
  CommPtr wrapped(CommPtr made) { return made ? wrap(std::move(made)) : nullptr; }

  CommPtr inner_;
};

}  // namespace shardproof
