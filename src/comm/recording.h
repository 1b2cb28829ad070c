// Records of every call that a rank makes on its communicators: what predictions of communication
// are compared with.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace shardproof {

struct Record {
  std::string operation;  // "all_reduce", ... as the contract names it
  std::string axis;       // the communicator's name
  std::string module;     // from the Site
  std::string value;
  std::string phase;
  at::ScalarType dtype = at::ScalarType::Undefined;  // Undefined for a barrier
  // What this rank hands in: all_reduce, all_gather, gather, send: its tensor; reduce_scatter,
  // all_to_all: the whole input; broadcast, scatter: the whole tensor on the root, 0 elsewhere;
  // recv, barrier: 0.
  int64_t elements = 0;
  int64_t bytes = 0;
  int ranks = 0;  // of the communicator
};

// A list of records that several communicators (and threads) may add to. An empty operation or axis
// in the sums stands for all of them.
class Recorder {
 public:
  void add(Record record);
  void clear();
  std::vector<Record> records() const;

  int64_t count(std::string_view operation = "", std::string_view axis = "") const;
  int64_t elements(std::string_view operation = "", std::string_view axis = "") const;
  int64_t bytes(std::string_view operation = "", std::string_view axis = "") const;

 private:
  mutable std::mutex mutex_;
  std::vector<Record> records_;
};

// `inner` with every call recorded once it has been accepted; what split and new_domain give
// records too.
CommPtr record(CommPtr inner, std::shared_ptr<Recorder> recorder);

}  // namespace shardproof
