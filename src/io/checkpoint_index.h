// The files of a checkpoint as one: tensors by name, whichever file holds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/safetensors_file.h"

namespace shardproof {

// Opens all files of a checkpoint and checks them against its index, before any tensor is read.
// `path` is a safetensors file, an "...index.json", or a directory with model.safetensors or else
// model.safetensors.index.json. Tensors that a file holds and the index does not list count as part
// of the checkpoint, so that none is passed over in silence.
//
// InputError, by name: nothing found; an index that is malformed, names missing files (all are
// listed) or files outside its directory, or tensors that their file lacks; one tensor in two
// files; and whatever SafetensorsFile refuses. Does not communicate: ranks that may see different
// disks must agree on failures themselves. Reads from several threads at once are safe.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::unique_ptr<SafetensorsFile>> files() const { return files_; }
  const std::vector<std::string>& names() const { return names_; }  // sorted
  bool contains(const std::string& name) const { return owners_.contains(name); }
  // The file that holds `name`; InputError where none does.
  const SafetensorsFile& file_of(const std::string& name) const;

  // As those of SafetensorsFile.
  const TensorEntry& entry(const std::string& name) const;
  at::ScalarType scalar_type(const std::string& name) const;
  at::Tensor read(const std::string& name) const;
  at::Tensor read_box(const std::string& name, std::span<const int64_t> begin,
                      std::span<const int64_t> size) const;
  void read_box_into(const std::string& name, std::span<const int64_t> begin,
                     std::span<const int64_t> size, const at::Tensor& out) const;
  int64_t bytes_read() const;

 private:
  void open_file(const std::filesystem::path& path);
  void open_index(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::unordered_map<std::string, const SafetensorsFile*> owners_;
  std::vector<std::string> names_;
};

}  // namespace shardproof
