#include "io/mxfp4.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace shardproof {
namespace {

// A block as the upper 16 bits of float32, that is bfloat16: a value has two significant bits, so
// that nothing is cut off. 256 rows of them are 16 KB, and a column of them a few cache lines.
constexpr int64_t kTileRows = 256;
constexpr size_t kTile = kTileRows * kMxfp4Block;
using Bits = std::array<uint16_t, kTile>;

// By the definition.
double value_of(int code, int scale) {
  constexpr std::array<double, 8> kMagnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double magnitude = std::ldexp(kMagnitudes[static_cast<size_t>(code & 7)], scale - 127);
  return code & 8 ? -magnitude : magnitude;
}

// Scales with which every value that is not zero is a normal bfloat16.
bool is_ordinary(int scale) { return scale >= 2 && scale <= 252; }

// Vectors of 16 bytes, which every machine that this runs on has.
using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Words8 = uint16_t __attribute__((vector_size(16)));

// a[0], b[0], a[1], b[1], ... of the lower and of the upper halves.
Bytes16 zip_low(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
Bytes16 zip_high(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
Words8 zip_low(Words8 a, Words8 b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
Words8 zip_high(Words8 a, Words8 b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// One block of an ordinary scale.
void decode_ordinary_block(const uint8_t* bytes, int scale, uint16_t* bits) {
  Bytes16 packed;
  std::memcpy(&packed, bytes, sizeof packed);
  const Bytes16 zero{};
  const Bytes16 first = zip_low(packed & 15, packed >> 4);
  const Bytes16 second = zip_high(packed & 15, packed >> 4);
  const std::array<Words8, 4> codes = {reinterpret_cast<Words8>(zip_low(first, zero)),
                                       reinterpret_cast<Words8>(zip_high(first, zero)),
                                       reinterpret_cast<Words8>(zip_low(second, zero)),
                                       reinterpret_cast<Words8>(zip_high(second, zero))};
  // The exponent and mantissa of a code are the last bits of bfloat16's exponent and the first of
  // its mantissa; 0.5, subnormal among codes, is half a step lower, and zero is zero.
  const auto exponent = static_cast<uint16_t>((scale - 1) << 7);
  for (const Words8& code : codes) {
    const Words8 magnitude = code & 7;
    const Words8 sign = (code & 8) << 12;
    Words8 value = (magnitude << 6) + exponent;
    value -= reinterpret_cast<Words8>(magnitude == 1) & 64;
    value = (value & reinterpret_cast<Words8>(magnitude != 0)) | sign;
    std::memcpy(bits, &value, sizeof value);
    bits += 8;
  }
}

void decode_block(const uint8_t* bytes, int scale, uint16_t* bits) {
  if (is_ordinary(scale)) return decode_ordinary_block(bytes, scale, bits);
  for (int64_t i = 0; i < kMxfp4BlockBytes; ++i) {
    bits[2 * i] = at::BFloat16(static_cast<float>(value_of(bytes[i] & 15, scale))).x;
    bits[2 * i + 1] = at::BFloat16(static_cast<float>(value_of(bytes[i] >> 4, scale))).x;
  }
}

void widen(const uint16_t* bits, int64_t count, at::BFloat16* out) {
  std::memcpy(out, bits, static_cast<size_t>(count) * sizeof *bits);
}
void widen(const uint16_t* bits, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(uint32_t{bits[i]} << 16);
}
void widen(const uint16_t* bits, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(uint32_t{bits[i]} << 16);
}

// 8 x 8 of 16 bits: `from` has rows of 32, `to` rows of kTileRows.
void transpose_8x8(const uint16_t* from, uint16_t* to) {
  std::array<Words8, 8> rows;
  for (size_t i = 0; i < 8; ++i) std::memcpy(&rows[i], from + i * kMxfp4Block, sizeof rows[i]);
  // Each time the index of an element, (row, column) in bits, rotates by one bit.
  for (int step = 0; step < 3; ++step) {
    std::array<Words8, 8> zipped;
    for (size_t i = 0; i < 4; ++i) {
      zipped[2 * i] = zip_low(rows[i], rows[i + 4]);
      zipped[2 * i + 1] = zip_high(rows[i], rows[i + 4]);
    }
    rows = zipped;
  }
  for (size_t i = 0; i < 8; ++i) std::memcpy(to + i * kTileRows, &rows[i], sizeof rows[i]);
}

// A matrix of codes, and of values.
template <class T>
struct Matrix {
  const uint8_t* blocks;
  const uint8_t* scales;
  int64_t row_blocks;
  T* out;
  int64_t rows;
  int64_t row_stride;
  int64_t column_stride;

  const uint8_t* codes(int64_t row, int64_t block) const {
    return blocks + (row * row_blocks + block) * kMxfp4BlockBytes;
  }
  int scale(int64_t row, int64_t block) const { return scales[row * row_blocks + block]; }
  T* at(int64_t row, int64_t column) const {
    return out + row * row_stride + column * column_stride;
  }
};

// Some rows of the values [begin, end) of a block; value 0 of it belongs into `column` of `out`
// (which may lie before the first).
struct Tile {
  int64_t row, rows, block, begin, end, column;
};

template <class T>
void decode_row(const Matrix<T>& matrix, const Tile& tile) {
  std::array<uint16_t, kMxfp4Block> bits;
  decode_block(matrix.codes(tile.row, tile.block), matrix.scale(tile.row, tile.block), bits.data());
  T* out = matrix.at(tile.row, tile.column + tile.begin);
  if (tile.end - tile.begin == kMxfp4Block)
    widen(bits.data(), kMxfp4Block, out);
  else
    widen(bits.data() + tile.begin, tile.end - tile.begin, out);
}

template <class T>
void decode_columns(const Matrix<T>& matrix, const Tile& tile) {
  alignas(64) Bits rows;
  alignas(64) Bits columns;
  for (int64_t r = 0; r < tile.rows; ++r)
    decode_block(matrix.codes(tile.row + r, tile.block), matrix.scale(tile.row + r, tile.block),
                 rows.data() + r * kMxfp4Block);
  for (int64_t r = 0; r < tile.rows; r += 8)
    for (int64_t c = 0; c < kMxfp4Block; c += 8)
      transpose_8x8(rows.data() + r * kMxfp4Block + c, columns.data() + c * kTileRows + r);
  for (int64_t c = tile.begin; c < tile.end; ++c) {
    T* out = matrix.at(tile.row, tile.column + c);
    const uint16_t* bits = columns.data() + c * kTileRows;
    if (matrix.row_stride == 1) {
      widen(bits, tile.rows, out);
      continue;
    }
    for (int64_t r = 0; r < tile.rows; ++r) widen(bits + r, 1, out + r * matrix.row_stride);
  }
}

// For values that float32 does not hold, and double does.
template <class T>
void decode_one_by_one(const Matrix<T>& matrix, const Tile& tile) {
  for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
    const uint8_t* codes = matrix.codes(row, tile.block);
    for (int64_t c = tile.begin; c < tile.end; ++c) {
      const int code = c % 2 == 0 ? codes[c / 2] & 15 : codes[c / 2] >> 4;
      *matrix.at(row, tile.column + c) =
          static_cast<T>(value_of(code, matrix.scale(row, tile.block)));
    }
  }
}

template <class T>
void decode_tile(const Matrix<T>& matrix, const Tile& tile) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t r = tile.row; r < tile.row + tile.rows; ++r)
      if (!is_ordinary(matrix.scale(r, tile.block))) return decode_one_by_one(matrix, tile);
  }
  if (matrix.column_stride == 1)
    decode_row(matrix, tile);
  else
    decode_columns(matrix, tile);
}

template <class T>
void decode_matrix(const Matrix<T>& matrix, int64_t first, int64_t count) {
  const int64_t last = first + count;
  const auto decode = [&](int64_t block, int64_t row, int64_t rows) {
    const int64_t start = block * kMxfp4Block;
    decode_tile(matrix, {.row = row,
                         .rows = rows,
                         .block = block,
                         .begin = std::max(first - start, int64_t{0}),
                         .end = std::min(last - start, kMxfp4Block),
                         .column = start - first});
  };
  const int64_t first_block = first / kMxfp4Block;
  const int64_t end_block = (last + kMxfp4Block - 1) / kMxfp4Block;
  // In the order in which `out` lies in memory.
  if (matrix.column_stride == 1) {
    for (int64_t row = 0; row < matrix.rows; ++row)
      for (int64_t block = first_block; block < end_block; ++block) decode(block, row, 1);
  } else {
    for (int64_t block = first_block; block < end_block; ++block)
      for (int64_t row = 0; row < matrix.rows; row += kTileRows)
        decode(block, row, std::min(kTileRows, matrix.rows - row));
  }
}

// Dims before the last two one by one, then matrices.
template <class T>
void decode_all(const at::Tensor& blocks, const at::Tensor& scales, int64_t first,
                const at::Tensor& out) {
  if (out.dim() > 2) {
    for (int64_t i = 0; i < out.size(0); ++i)
      decode_all<T>(blocks.select(0, i), scales.select(0, i), first, out.select(0, i));
    return;
  }
  const bool one_row = out.dim() == 1;
  decode_matrix(Matrix<T>{.blocks = blocks.const_data_ptr<uint8_t>(),
                          .scales = scales.const_data_ptr<uint8_t>(),
                          .row_blocks = scales.size(-1),
                          .out = out.mutable_data_ptr<T>(),
                          .rows = one_row ? 1 : out.size(0),
                          .row_stride = one_row ? 0 : out.stride(0),
                          .column_stride = out.stride(-1)},
                first, out.size(-1));
}

void expect_fitting(const at::Tensor& blocks, const at::Tensor& scales, int64_t first,
                    const at::Tensor& out) {
  const auto stored = [](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kByte && tensor.is_cpu() && tensor.is_contiguous();
  };
  SP_EXPECT(stored(blocks) && stored(scales),
            "MXFP4 blocks and scales must be contiguous uint8 on the CPU");
  SP_EXPECT(scales.dim() >= 1 && blocks.dim() == scales.dim() + 1 &&
                blocks.sizes().slice(0, static_cast<size_t>(scales.dim())) == scales.sizes() &&
                blocks.size(-1) == kMxfp4BlockBytes,
            "MXFP4 blocks [{}] do not go with scales [{}]: give [..., count, 16] and [..., count]",
            fmt::join(blocks.sizes(), ", "), fmt::join(scales.sizes(), ", "));
  SP_EXPECT(out.is_cpu() && mxfp4_decodes_to(out.scalar_type()),
            "MXFP4 values are decoded to bfloat16, float32 or float64 on the CPU, not to {}",
            c10::toString(out.scalar_type()));
  SP_EXPECT(out.dim() == scales.dim() &&
                out.sizes().slice(0, static_cast<size_t>(out.dim() - 1)) ==
                    scales.sizes().slice(0, static_cast<size_t>(out.dim() - 1)) &&
                first >= 0 && first + out.size(-1) <= scales.size(-1) * kMxfp4Block,
            "values from {} on of MXFP4 scales [{}] cannot fill [{}]", first,
            fmt::join(scales.sizes(), ", "), fmt::join(out.sizes(), ", "));
}

}  // namespace

bool mxfp4_decodes_to(at::ScalarType dtype) {
  return dtype == at::kBFloat16 || dtype == at::kFloat || dtype == at::kDouble;
}

void decode_mxfp4_into(const at::Tensor& blocks, const at::Tensor& scales, int64_t first,
                       const at::Tensor& out) {
  expect_fitting(blocks, scales, first, out);
  if (out.numel() == 0) return;
  if (out.scalar_type() == at::kBFloat16)
    decode_all<at::BFloat16>(blocks, scales, first, out);
  else if (out.scalar_type() == at::kFloat)
    decode_all<float>(blocks, scales, first, out);
  else
    decode_all<double>(blocks, scales, first, out);
}

at::Tensor decode_mxfp4(const at::Tensor& blocks, const at::Tensor& scales, at::ScalarType dtype) {
  std::vector<int64_t> shape = scales.sizes().vec();
  SP_EXPECT(!shape.empty(), "MXFP4 scales have no dims; give [..., count]");
  shape.back() *= kMxfp4Block;
  at::Tensor out = at::empty(shape, at::device(at::kCPU).dtype(dtype));
  decode_mxfp4_into(blocks, scales, 0, out);
  return out;
}

}  // namespace shardproof
