// The dtypes of the safetensors format, and their counterparts in ATen.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardproof {

enum class FileDtype : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF4,      // two elements a byte: no ATen type has one element for one of these
  kF6E2M3,  // four elements in three bytes: not in ATen
  kF6E3M2,
};

// "F32", as in a header.
std::string_view dtype_name(FileDtype dtype);
int64_t dtype_bits(FileDtype dtype);
// Nothing for the types of less than a byte.
std::optional<at::ScalarType> scalar_type_of(FileDtype dtype);
// Nothing for a name that is not of the format.
std::optional<FileDtype> parse_dtype(std::string_view name);
// Nothing for ATen types that the format lacks, such as complex128.
std::optional<FileDtype> file_dtype_of(at::ScalarType type);

}  // namespace shardproof
