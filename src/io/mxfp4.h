// MXFP4, the 4-bit format of GPT-OSS checkpoints (OCP Microscaling Formats v1.0): blocks of 32
// values along the last dim. A value is a code of 4 bits (sign, 2 of exponent, 1 of mantissa: 0,
// 0.5, 1, 1.5, 2, 3, 4, 6), two codes a byte, the low nibble first; a block has one scale of 8
// bits, 2^(scale - 127).
//
// A tensor [..., n] is stored as two of uint8: blocks [..., n / 32, 16] and scales [..., n / 32].
//
// Values are those of transformers 5.24 (integrations/mxfp4.py, before its transpose), bit for bit:
// its `ldexp` knows no NaN, so that scale 255 means 2^128 here too.
//
// One thread of a 2.8 GHz Xeon decodes 2.5 Gvalues/s within its caches (5 GB/s of bfloat16), and
// 0.8 with the transpose from file to memory at the widths of GPT-OSS 20B (1.3 to 1.9 GB/s).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace shardproof {

inline constexpr int64_t kMxfp4Block = 32;       // values that share a scale
inline constexpr int64_t kMxfp4BlockBytes = 16;  // of codes

// Values [first, first + out.size(-1)) of every row into `out`: [..., values] of bfloat16, float32
// or float64, on the CPU, of any strides. `blocks` [..., count, 16] and `scales` [..., count]:
// contiguous uint8 on the CPU, leading dims those of `out`. The range may begin and end inside a
// block. Needs no memory beside; a transposed `out` (the dim before the last contiguous) is written
// in tiles. Throws ContractError for other shapes, dtypes or ranges.
void decode_mxfp4_into(const at::Tensor& blocks, const at::Tensor& scales, int64_t first,
                       const at::Tensor& out);

// All of it, as a new contiguous tensor [..., count * 32] of `dtype`.
at::Tensor decode_mxfp4(const at::Tensor& blocks, const at::Tensor& scales, at::ScalarType dtype);

// True for the dtypes that values can be decoded to.
bool mxfp4_decodes_to(at::ScalarType dtype);

}  // namespace shardproof
