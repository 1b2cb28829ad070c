// A recorded run: every value whole, in files, in execution order. What other runs are compared
// with.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/value.h"
#include "io/safetensors_file.h"

namespace shardproof {

struct RecordEntry {
  ValueKey key;
  int64_t order = 0;    // of execution
  bool present = true;  // false: a gradient that never came
  std::vector<int64_t> shape;
  double norm = 0;   // Frobenius
  std::string file;  // in the record's folder; tensors there are named key.name
  int64_t elements() const;
};

// Takes the values of one run on one rank that holds all of each, and writes them to `folder`:
// one safetensors file a kind, and index.json.
class RecordWriter {
 public:
  explicit RecordWriter(std::filesystem::path folder);
  // Keeps the tensor, not a copy, until flush(). Throws ContractError where it is not the whole.
  void take(const Value& value);
  // Writes what was taken since the last flush. Values of one (kind, step) must come in one flush.
  void flush();
  // Orders gradients as `backward_order` says, then writes the index.
  void finish(const std::vector<std::string>& backward_order);

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<RecordEntry, at::Tensor>> waiting_;
  std::vector<RecordEntry> entries_;
};

// Reads from several threads at once are safe.
class RunRecord {
 public:
  explicit RunRecord(const std::filesystem::path& folder);
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<RecordEntry>& entries() const { return entries_; }
  // Nothing where the run had no such value.
  const RecordEntry* find(const ValueKey& key) const;
  // These positions of the value, in the order of the region.
  at::Tensor read(const RecordEntry& entry, const Region& region) const;
  // The norm of all values of one kind and step together; 0 where there are none.
  double norm_of_kind(Kind kind, int64_t step) const;

 private:
  std::filesystem::path folder_;
  std::vector<RecordEntry> entries_;
  std::map<ValueKey, size_t> index_;
  std::map<std::pair<Kind, int64_t>, double> norms_;  // of all values of a kind and step
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
};

}  // namespace shardproof
