// Reading a safetensors file: whole tensors, or rectangular boxes without the rest.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/file_handle.h"
#include "io/safetensors_header.h"

namespace shardproof {

// An open file whose header was found good: what it claims and its true length agree. Reads are
// positional, into CPU memory of the caller or a new CPU tensor; nothing is kept. Reads from
// several threads at once are safe.
//
// Throws InputError (file, tensor, values) for what is wrong with the file, ContractError for boxes
// outside the tensor. A file that has been cut since it was opened is noticed when it is read.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  // In the order of the data.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return by_name_.contains(name); }
  const TensorEntry& entry(const std::string& name) const;
  // The ATen dtype that reads have; InputError where ATen has none (F4, F6).
  at::ScalarType scalar_type(const std::string& name) const;

  // The whole tensor: contiguous, of the file's shape and dtype.
  at::Tensor read(const std::string& name) const;
  // Box [begin, begin + size) in each dimension, as a contiguous tensor of shape `size`. Rows or
  // other contiguous runs are read exactly. Runs with gaps of at most 4 KiB between them are read
  // together with the gaps, through a buffer of at most 4 MiB.
  at::Tensor read_box(const std::string& name, std::span<const int64_t> begin,
                      std::span<const int64_t> size) const;
  // The same into `out`: contiguous, on the CPU, of shape `size` and the file's dtype.
  void read_box_into(const std::string& name, std::span<const int64_t> begin,
                     std::span<const int64_t> size, const at::Tensor& out) const;

  // Bytes of data read so far, gaps included, the header not.
  int64_t bytes_read() const { return bytes_read_; }

 private:
  FileHandle file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> by_name_;
  mutable std::atomic<int64_t> bytes_read_ = 0;
};

}  // namespace shardproof
