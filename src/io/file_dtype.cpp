#include "io/file_dtype.h"

#include <algorithm>
#include <array>

namespace shardproof {
namespace {

struct Row {
  FileDtype dtype;
  std::string_view name;
  int64_t bits;
  std::optional<at::ScalarType> type;
};

constexpr std::array kRows = {
    Row{FileDtype::kBool, "BOOL", 8, at::kBool},
    Row{FileDtype::kU8, "U8", 8, at::kByte},
    Row{FileDtype::kI8, "I8", 8, at::kChar},
    Row{FileDtype::kI16, "I16", 16, at::kShort},
    Row{FileDtype::kU16, "U16", 16, at::kUInt16},
    Row{FileDtype::kI32, "I32", 32, at::kInt},
    Row{FileDtype::kU32, "U32", 32, at::kUInt32},
    Row{FileDtype::kI64, "I64", 64, at::kLong},
    Row{FileDtype::kU64, "U64", 64, at::kUInt64},
    Row{FileDtype::kF16, "F16", 16, at::kHalf},
    Row{FileDtype::kBF16, "BF16", 16, at::kBFloat16},
    Row{FileDtype::kF32, "F32", 32, at::kFloat},
    Row{FileDtype::kF64, "F64", 64, at::kDouble},
    Row{FileDtype::kC64, "C64", 64, at::kComplexFloat},
    Row{FileDtype::kF8E4M3, "F8_E4M3", 8, at::kFloat8_e4m3fn},
    Row{FileDtype::kF8E5M2, "F8_E5M2", 8, at::kFloat8_e5m2},
    Row{FileDtype::kF8E8M0, "F8_E8M0", 8, at::kFloat8_e8m0fnu},
    Row{FileDtype::kF8E4M3FNUZ, "F8_E4M3FNUZ", 8, at::kFloat8_e4m3fnuz},
    Row{FileDtype::kF8E5M2FNUZ, "F8_E5M2FNUZ", 8, at::kFloat8_e5m2fnuz},
    Row{FileDtype::kF4, "F4", 4, std::nullopt},
    Row{FileDtype::kF6E2M3, "F6_E2M3", 6, std::nullopt},
    Row{FileDtype::kF6E3M2, "F6_E3M2", 6, std::nullopt},
};

constexpr bool rows_in_enum_order() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  return true;
}
static_assert(rows_in_enum_order());

const Row& row(FileDtype dtype) { return kRows.at(static_cast<size_t>(dtype)); }

}  // namespace

std::string_view dtype_name(FileDtype dtype) { return row(dtype).name; }
int64_t dtype_bits(FileDtype dtype) { return row(dtype).bits; }
std::optional<at::ScalarType> scalar_type_of(FileDtype dtype) { return row(dtype).type; }

std::optional<FileDtype> parse_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kRows, name, &Row::name);
  return found == kRows.end() ? std::nullopt : std::optional(found->dtype);
}

std::optional<FileDtype> file_dtype_of(at::ScalarType type) {
  const auto* found = std::ranges::find(kRows, std::optional(type), &Row::type);
  return found == kRows.end() ? std::nullopt : std::optional(found->dtype);
}

}  // namespace shardproof
