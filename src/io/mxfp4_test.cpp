#include "io/mxfp4.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace shardproof {
namespace {

constexpr std::array<double, 16> kValues = {0,    0.5,  1,  1.5,  2,  3,  4,  6,
                                            -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

struct Stored {
  at::Tensor blocks, scales;
};

// Every code as low and as high nibble; scales as given.
Stored stored(const std::vector<int64_t>& shape, const std::vector<uint8_t>& scales) {
  std::vector<int64_t> blocks_shape = shape;
  blocks_shape.push_back(kMxfp4BlockBytes);
  Stored result{at::empty(blocks_shape, at::kByte), at::empty(shape, at::kByte)};
  auto* codes = result.blocks.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < result.blocks.numel(); ++i)
    codes[i] = static_cast<uint8_t>((i * i * 7 + i * 29 + 11) % 251);
  for (int64_t i = 0; i < result.scales.numel(); ++i)
    result.scales.mutable_data_ptr<uint8_t>()[i] = scales[static_cast<size_t>(i) % scales.size()];
  return result;
}

// By the definition, value by value: [..., count * 32].
at::Tensor by_definition(const Stored& from, at::ScalarType dtype) {
  std::vector<int64_t> shape = from.scales.sizes().vec();
  shape.back() *= kMxfp4Block;
  const at::Tensor result = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < result.numel(); ++i) {
    const uint8_t byte = from.blocks.const_data_ptr<uint8_t>()[i / 2];
    const uint8_t code = i % 2 == 0 ? byte & 15 : byte >> 4;
    const int scale = from.scales.const_data_ptr<uint8_t>()[i / kMxfp4Block];
    result.mutable_data_ptr<double>()[i] = std::ldexp(kValues[code], scale - 127);
  }
  return result.to(dtype);
}

// The sign of zero counts.
void expect_same(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_EQ(got.scalar_type(), want.scalar_type());
  EXPECT_TRUE(at::equal(got, want));
  EXPECT_TRUE(at::equal(got.signbit(), want.signbit()));
}

// What transformers 5.24 `convert_moe_packed_tensors` gives for stored({2, 3, 2}, kScales): bits of
// bfloat16 [2, 64, 3], the last two dims swapped.
constexpr std::array<uint8_t, 12> kScales = {127, 120, 0, 255, 1, 254, 130, 118, 126, 90, 200, 128};
// clang-format off
constexpr std::array<uint16_t, 384> kTransformers = {
    0xbfc0, 0x8060, 0x8000, 0x0000, 0x0080, 0x8080, 0xc0c0, 0x8020, 0x0000, 0x3f80, 0x0060, 0x0180,
    0x3f00, 0x00c0, 0x0180, 0x4080, 0x0060, 0x0080, 0x3f00, 0x8140, 0x0140, 0xbf80, 0x0060, 0x81c0,
    0xc0c0, 0x0140, 0x01c0, 0xc080, 0x00c0, 0x8140, 0x0000, 0x80c0, 0x01c0, 0x4040, 0x0140, 0x8100,
    0xbf80, 0x0020, 0x0140, 0xbfc0, 0x8060, 0x8100, 0x40c0, 0x0060, 0x0040, 0x3fc0, 0x8140, 0x8140,
    0xc040, 0x8000, 0x80c0, 0xbfc0, 0x0080, 0x8180, 0x4080, 0x0100, 0x8000, 0x4040, 0x8040, 0x0040,
    0x8000, 0x0140, 0x8180, 0xc0c0, 0x0020, 0x0100, 0xc040, 0x0020, 0x0080, 0xbf80, 0x8020, 0x8040,
    0x0000, 0x8100, 0x0100, 0x40c0, 0x0020, 0x8180, 0x3f00, 0x0080, 0x8040, 0x4000, 0x8060, 0x0100,
    0x0000, 0x80c0, 0x01c0, 0x3f80, 0x00c0, 0x80c0, 0xc040, 0x0080, 0x8000, 0x0000, 0x0020, 0x00c0,
    0x8000, 0x7f80, 0x7f00, 0x0000, 0xff80, 0xff80, 0x3b80, 0x7f80, 0xff80, 0x3b80, 0xff80, 0x7f80,
    0x8000, 0x8000, 0xff00, 0x3c00, 0x8000, 0x0000, 0xbcc0, 0x7f80, 0xff80, 0x3c80, 0x7f80, 0xff40,
    0x0000, 0x7f80, 0x7f80, 0x8000, 0x7f80, 0x8000, 0x3b80, 0xff80, 0xff00, 0xbc80, 0x7f80, 0x7f80,
    0x3cc0, 0x8000, 0xff80, 0x3b80, 0xff00, 0x7f40, 0x3c00, 0xff80, 0xff80, 0x3d40, 0xff80, 0x7f00,
    0xbcc0, 0x7f80, 0xff80, 0xbcc0, 0xff80, 0x7f00, 0xbc40, 0xff80, 0xff00, 0x3cc0, 0x7f80, 0x7f40,
    0x3c00, 0xff80, 0x7f80, 0xbd00, 0x8000, 0x7f80, 0xbc80, 0xff80, 0xff80, 0x3d40, 0xff80, 0x7f80,
    0x3c80, 0xff80, 0x7f80, 0x3c00, 0x7f80, 0xff40, 0x3cc0, 0xff00, 0xff00, 0xbcc0, 0xff80, 0xff80,
    0xbb80, 0x7f80, 0x7f00, 0xbb80, 0x7f80, 0x7f80, 0xbc40, 0x7f80, 0x7f40, 0x3d00, 0x0000, 0xff40,
    0x4240, 0xc000, 0x6540, 0x4100, 0xbf40, 0x6540, 0x4180, 0xbf00, 0x8000, 0xc100, 0x0000, 0x8000,
    0x4180, 0xc040, 0x6540, 0x4140, 0x3fc0, 0xe400, 0xc1c0, 0x3f00, 0x6480, 0xc180, 0xbf80, 0xe4c0,
    0xc080, 0x8000, 0x6480, 0x4240, 0x3f40, 0x6380, 0x4140, 0x4040, 0xe4c0, 0x4140, 0xbf40, 0x64c0,
    0x4200, 0xbe80, 0x6480, 0xc240, 0x3f80, 0xe440, 0xc180, 0x3f80, 0xe500, 0xc180, 0xc000, 0x6380,
    0x0000, 0x3f00, 0x6380, 0xc140, 0xbe80, 0xe380, 0x4100, 0xc000, 0x6540, 0xc100, 0x3f80, 0x6380,
    0x4100, 0x8000, 0x6500, 0xc100, 0x3e80, 0xe400, 0x0000, 0xbf40, 0x8000, 0xc140, 0xc000, 0x6480,
    0xc180, 0x3e80, 0x6440, 0xc180, 0xbfc0, 0xe540, 0x4200, 0x3fc0, 0x6380, 0xc240, 0xbf80, 0xe440,
    0x4140, 0x4040, 0xe4c0, 0x4140, 0xbf80, 0x6540, 0xc080, 0x4040, 0x6540, 0x4240, 0xbfc0, 0x64c0,
    0xbbc0, 0x2dc0, 0xc140, 0xbb80, 0xae40, 0x4040, 0x3b80, 0x2e00, 0x40c0, 0x3b40, 0x2d00, 0x4040,
    0x3b80, 0x0000, 0xbf80, 0xbb00, 0x2e00, 0x4040, 0x3c40, 0x8000, 0xc040, 0x3b00, 0xad00, 0x4080,
    0x3b40, 0x2d40, 0xc040, 0xbb40, 0x0000, 0x4100, 0x3b00, 0x2e40, 0xbf80, 0x3bc0, 0x2e00, 0xbf80,
    0xbb00, 0xac80, 0x40c0, 0xbc40, 0xadc0, 0xc0c0, 0x3bc0, 0xae00, 0x4080, 0xbb40, 0x2dc0, 0x4000,
    0xbc00, 0xad80, 0xc080, 0x3c40, 0xae00, 0x4140, 0x3bc0, 0xadc0, 0x4000, 0x3bc0, 0x8000, 0xc100,
    0xbb00, 0xad80, 0xc040, 0x3b40, 0x2d40, 0x40c0, 0xbbc0, 0x2d80, 0xc0c0, 0x3b00, 0xae40, 0xc0c0,
    0xbc00, 0xae40, 0x4000, 0x3b00, 0xad40, 0x4140, 0xbbc0, 0x8000, 0x40c0, 0x3b40, 0xac80, 0x3f80,
    0xbb00, 0xae40, 0x3f80, 0x3bc0, 0x2e40, 0xc080, 0x3bc0, 0x2d80, 0x0000, 0x8000, 0x2e40, 0x8000,
};
// clang-format on

TEST(Mxfp4, IsWhatTransformersDequantises) {
  const Stored from = stored({2, 3, 2}, {kScales.begin(), kScales.end()});
  const at::Tensor want = at::empty({2, 64, 3}, at::kBFloat16);
  std::memcpy(want.mutable_data_ptr(), kTransformers.data(), sizeof kTransformers);

  expect_same(decode_mxfp4(from.blocks, from.scales, at::kBFloat16).transpose(1, 2), want);
  // Its float32 is the same but for what bfloat16 cannot hold, of which there is none.
  expect_same(decode_mxfp4(from.blocks, from.scales, at::kFloat).transpose(1, 2),
              want.to(at::kFloat));
}

TEST(Mxfp4, EveryScaleAndCodeInEveryDtype) {
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  const Stored from = stored({256, 1}, all);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble})
    expect_same(decode_mxfp4(from.blocks, from.scales, dtype), by_definition(from, dtype));
}

// Ranges that begin and end inside a block, into contiguous, transposed and stepped memory.
TEST(Mxfp4, AnyRangeIntoAnyStrides) {
  const Stored from = stored({2, 37, 3}, {127, 120, 131, 126, 125});
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble}) {
    const at::Tensor whole = by_definition(from, dtype);
    for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 96}, {0, 1}, {95, 1}, {31, 2}, {5, 20}, {32, 32}, {33, 31}, {17, 79}, {64, 0}}) {
      SCOPED_TRACE(std::to_string(first) + " " + std::to_string(count));
      const at::Tensor want = whole.narrow(-1, first, count);
      const at::Tensor plain = at::zeros({2, 37, count}, dtype);
      const at::Tensor turned = at::zeros({2, count, 37}, dtype);
      const at::Tensor stepped = at::zeros({2, 74, count}, dtype);
      decode_mxfp4_into(from.blocks, from.scales, first, plain);
      decode_mxfp4_into(from.blocks, from.scales, first, turned.transpose(1, 2));
      decode_mxfp4_into(from.blocks, from.scales, first, stepped.slice(1, 1, 74, 2));
      expect_same(plain, want);
      expect_same(turned.transpose(1, 2), want);
      expect_same(stepped.slice(1, 1, 74, 2), want);
      EXPECT_EQ(stepped.slice(1, 0, 74, 2).abs().sum().item<double>(), 0);
    }
  }
}

TEST(Mxfp4, ShapesDtypesAndRangesAreChecked) {
  const Stored from = stored({3, 2}, {127});
  const auto into = [&](int64_t first, const at::Tensor& out) {
    decode_mxfp4_into(from.blocks, from.scales, first, out);
  };
  EXPECT_THROW(into(1, at::empty({3, 64})), ContractError);
  EXPECT_THROW(into(-1, at::empty({3, 4})), ContractError);
  EXPECT_THROW(into(0, at::empty({2, 64})), ContractError);
  EXPECT_THROW(into(0, at::empty({3, 64}, at::kHalf)), ContractError);
  EXPECT_THROW(decode_mxfp4(from.blocks.to(at::kInt), from.scales, at::kFloat), ContractError);
  EXPECT_THROW(decode_mxfp4(from.blocks, from.scales.narrow(1, 0, 1), at::kFloat), ContractError);
  EXPECT_THROW(decode_mxfp4(from.blocks.narrow(2, 0, 8).contiguous(), from.scales, at::kFloat),
               ContractError);
}

}  // namespace
}  // namespace shardproof
