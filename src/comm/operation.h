// One started operation: messages under way, and what follows once they have arrived.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport.h"

namespace shardproof {

class Operation {
 public:
  // What a stage waits for before it runs: the messages to this rank, or those it sends as well.
  enum class After { kReceives, kAll };
  using Stage = std::function<void(Operation&)>;

  Operation(std::string name, std::string communicator,
            std::shared_ptr<const std::vector<int>> members, Site site);

  void add_send(int peer, std::unique_ptr<Request> request);
  void add_receive(int peer, std::unique_ptr<Request> request);
  // Stages run in order; each may post more messages and add more stages: at the end, or next in
  // turn.
  void then(After after, Stage stage);
  void then_first(After after, Stage stage);

  // Tests the messages and runs the stages that are due. True when all is done; nothing is held
  // then.
  bool advance();
  bool done() const { return done_; }

  // "all_reduce on 'tp' (module ..., value ..., phase ...)"
  std::string describe() const;
  // The peers whose messages are still missing, then those who have not taken ours: "ranks 1, 3".
  std::string missing() const;

 private:
  struct Pending {
    int peer;
    std::unique_ptr<Request> request;
  };
  struct Due {
    After after;
    Stage stage;
  };
  static void test(std::vector<Pending>& pending);

  std::string name_;
  std::string communicator_;
  std::shared_ptr<const std::vector<int>> members_;  // domain rank of each rank
  Site site_;
  std::vector<Pending> sends_;
  std::vector<Pending> receives_;
  std::deque<Due> stages_;
  bool done_ = false;
};

}  // namespace shardproof
