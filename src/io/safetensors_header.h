// The header of a safetensors file: parsed and checked before anything is allocated for a tensor.
//
// A file is 8 bytes of header length (little-endian), the header (a JSON object: tensor name ->
// {dtype, shape, data_offsets}, and "__metadata__" with text values), then the data. The tensors
// must fill the data exactly: no overlap, no hole, nothing missing, nothing behind the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_dtype.h"

namespace shardproof {

inline constexpr int64_t kHeaderLengthBytes = 8;
inline constexpr int64_t kLargestHeader = 100'000'000;  // the format's own limit
inline constexpr const char* kMetadataKey = "__metadata__";

struct TensorEntry {
  std::string name;
  FileDtype dtype = FileDtype::kF32;
  std::vector<int64_t> shape;  // empty: a scalar
  int64_t begin = 0;           // bytes from the start of the data
  int64_t end = 0;

  int64_t bytes() const { return end - begin; }
  int64_t elements() const;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of the data
  std::map<std::string, std::string> metadata;
  int64_t data_begin = 0;  // bytes from the start of the file
};

// The header length that the first bytes of a file give (`start`: 8 of them, or all where the file
// is shorter). InputError where the file of `file_size` bytes cannot hold such a header.
int64_t parse_header_length(const std::filesystem::path& file, std::span<const std::byte> start,
                            int64_t file_size);

// Parses the header text of a file of `file_size` bytes. InputError, one line with file, tensor and
// values, for whatever is not as described above.
SafetensorsHeader parse_safetensors_header(const std::filesystem::path& file, std::string_view text,
                                           int64_t file_size);

// Bytes of a tensor. Nothing where they overflow, or are no whole number. Sizes of 0 count as 1 in
// the overflow check, since strides are computed that way.
std::optional<int64_t> tensor_bytes(FileDtype dtype, std::span<const int64_t> shape);

}  // namespace shardproof
