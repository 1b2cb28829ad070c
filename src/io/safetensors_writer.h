// Writing a safetensors file, whole or tensor by tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/file_handle.h"
#include "io/safetensors_header.h"

namespace shardproof {

struct TensorDeclaration {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
};

using FileMetadata = std::map<std::string, std::string>;

// Writes under a temporary name beside `path`; finish() gives the file its name. Until then, and
// where writing fails, whatever was at `path` stays as it is; the temporary file is removed.
//
// Tensors are declared first and written in any order, so that only one need be in memory. Data
// lies in the order of declaration, wider dtypes first, which aligns every tensor to its element
// size.
//
// InputError: the file cannot be written (full disk, no permission), a name or metadata that is not
// UTF-8. ContractError: a name declared twice, a dtype that the format lacks, a tensor unlike its
// declaration, written twice or never.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, std::span<const TensorDeclaration> tensors,
                    const FileMetadata& metadata = {{"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Writes the values of `tensor`: any strides, any device (copied to the CPU), may require grad.
  void write(const std::string& name, const at::Tensor& tensor);
  // Every declared tensor must have been written. Flushes to the disk, then renames.
  void finish();

 private:
  struct Slot {
    TensorEntry entry;
    bool written = false;
  };

  std::filesystem::path path_;
  FileHandle file_;  // the temporary one
  std::unordered_map<std::string, Slot> slots_;
  int64_t data_begin_ = 0;
  bool finished_ = false;
};

// All at once. Names may share storage: each is written with its own values.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const std::pair<std::string, at::Tensor>> tensors,
                       const FileMetadata& metadata = {{"format", "pt"}});

}  // namespace shardproof
