// Every operation of the contract as tagged messages over a Transport: the one implementation
// behind all backends. Collectives are numbered in the order in which they are started, and the
// number is their tag, so they may be waited for in any order.
//
//   all_gather, all_to_all, gather, scatter, broadcast   one message a pair of ranks
//   reduce_scatter   exchange of parts in rounds of bounded scratch, added here in rank order
//   all_reduce       small: all-gather, then the same sum everywhere;
//                    large: reduce-scatter of even slices, then all-gather
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/engine.h"
#include "comm/exchange.h"

namespace shardproof {

class MessageCommunicator final : public Communicator {
 public:
  // All ranks of the transport's domain, which is the first of its world.
  MessageCommunicator(std::unique_ptr<Transport> transport, std::string name);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_->size()); }
  const std::string& name() const override { return name_; }

  Work all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) override;
  Work all_gather(at::Tensor out, at::Tensor in, Counts counts, const Site& site) override;
  Work reduce_scatter(at::Tensor out, at::Tensor in, Counts counts, ReduceOp op,
                      const Site& site) override;
  Work all_to_all(at::Tensor out, Counts recv_counts, at::Tensor in, Counts send_counts,
                  const Site& site) override;
  Work broadcast(at::Tensor tensor, int root, const Site& site) override;
  Work gather(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override;
  Work scatter(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override;
  Work send(at::Tensor tensor, int to, int tag, const Site& site) override;
  Work recv(at::Tensor tensor, int from, int tag, const Site& site) override;
  Work barrier(const Site& site) override;

  CommPtr split(int color, int key, std::string name) override;
  CommPtr new_domain(std::string name) override;

  void abort(const std::string& reason) override;
  void announce(std::chrono::milliseconds duration, const std::string& what) override;
  void set_deadline(std::chrono::milliseconds deadline) override;

 private:
  MessageCommunicator(std::shared_ptr<Engine> engine, std::vector<int> members, int rank,
                      int64_t context, std::string name);
  // Begins operation number sequence_: throws if the domain is aborted.
  std::shared_ptr<Operation> begin(const char* name, const Site& site);
  Link next_link();
  Link user_link(int tag) const;
  Work started(const std::shared_ptr<Operation>& operation);
  void expect_rank(const char* role, int rank) const;
  void expect_counts(Counts counts, const at::Tensor& whole, const at::Tensor& part) const;
  // Every rank's `values`, in rank order.
  std::vector<std::vector<int64_t>> exchange_values(std::vector<int64_t> values, const char* what);

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const std::vector<int>> members_;  // domain rank of each rank
  int rank_;
  int64_t context_;
  std::string name_;
  int64_t sequence_ = 0;
};

}  // namespace shardproof
