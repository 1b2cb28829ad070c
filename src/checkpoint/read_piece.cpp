#include "checkpoint/read_piece.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "io/mxfp4.h"

namespace shardproof {
namespace {

// Runs shorter than this are read through a slab: fewer calls to the system.
constexpr int64_t kLeastDirectBytes = 32 << 10;

using Sizes = std::vector<int64_t>;
// begin and size within the box.
using UseSlab = std::function<void(const Sizes&, const Sizes&)>;

// Cuts a box into slabs of at most `most` elements, along its first dims.
void for_each_slab(const Sizes& box, int64_t most, const UseSlab& use) {
  size_t cut = 0;  // the dim that is cut into chunks; those before into single positions
  int64_t rest = 1;
  for (size_t d = 1; d < box.size(); ++d) rest *= box[d];
  while (cut + 1 < box.size() && rest > most) rest /= box[++cut];
  Sizes begin(box.size(), 0);
  Sizes size = box;
  if (box.empty()) return use(begin, size);
  for (size_t d = 0; d < cut; ++d) size[d] = 1;
  const int64_t chunk = std::max<int64_t>(1, most / rest);
  while (true) {
    for (begin[cut] = 0; begin[cut] < box[cut]; begin[cut] += chunk) {
      size[cut] = std::min(chunk, box[cut] - begin[cut]);
      use(begin, size);
    }
    size_t d = cut;
    while (d > 0 && ++begin[d - 1] == box[d - 1]) begin[--d] = 0;
    if (d == 0) return;
  }
}

at::Tensor part(at::Tensor view, const Sizes& begin, const Sizes& size) {
  for (size_t d = 0; d < begin.size(); ++d)
    view = view.narrow(static_cast<int64_t>(d), begin[d], size[d]);
  return view;
}

Sizes sum(Sizes a, const Sizes& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus<>());
  return a;
}

// Elements of the longest trailing part that lies contiguously.
int64_t contiguous_elements(const at::Tensor& view) {
  int64_t count = 1;
  for (int64_t d = view.dim() - 1; d >= 0; --d) {
    if (view.size(d) != 1 && view.stride(d) != count) break;
    count *= view.size(d);
  }
  return count;
}

// The part [begin, begin + as many as needed) of `buffer` as a tensor.
at::Tensor scratch(at::Tensor& buffer, const Sizes& size, at::ScalarType dtype, int64_t begin = 0) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(dtype));
  for (const int64_t extent : size) bytes *= extent;
  // Made once, of its final size: memory given back is zeroed by the system before it comes again.
  if (!buffer.defined())
    buffer = at::empty({kLoadSlabBytes}, at::device(at::kCPU).dtype(at::kByte));
  SP_ASSERT(begin + bytes <= kLoadSlabBytes, "a slab of {} bytes is too large", begin + bytes);
  return buffer.narrow(0, begin, bytes).view(dtype).view(size);
}

// Those that hold the values [first, first + count).
Interval blocks_of(int64_t first, int64_t count) {
  return {first / kMxfp4Block, (first + count + kMxfp4Block - 1) / kMxfp4Block};
}

}  // namespace

void PieceReader::read_plain(const Piece& piece, const at::Tensor& place) {
  const std::string& tensor = piece.source->tensors[0];
  const at::ScalarType type = files_.scalar_type(tensor);
  const auto element = static_cast<int64_t>(c10::elementSize(type));
  const int64_t contiguous = contiguous_elements(place);
  const bool direct = place.is_cpu() && place.scalar_type() == type &&
                      (contiguous == place.numel() || contiguous * element >= kLeastDirectBytes);
  for_each_slab(piece.size, direct ? contiguous : kLoadSlabBytes / element,
                [&](const Sizes& begin, const Sizes& size) {
                  const Sizes in_file = sum(piece.begin, begin);
                  const at::Tensor target = part(place, begin, size);
                  if (direct) return files_.read_box_into(tensor, in_file, size, target);
                  const at::Tensor stored = scratch(stored_, size, type);
                  files_.read_box_into(tensor, in_file, size, stored);
                  target.copy_(stored);
                });
}

void PieceReader::read_mxfp4(const Piece& piece, const at::Tensor& place) {
  const bool direct = place.is_cpu() && mxfp4_decodes_to(place.scalar_type());
  // Whole blocks are read, however little of them is wanted: at worst one for each value. Where a
  // slab is part of a row, both its ends may be parts of blocks.
  constexpr int64_t kBlockCost = kMxfp4BlockBytes + 1;
  constexpr int64_t kBlocks = kLoadSlabBytes / kBlockCost;
  const int64_t row = piece.size.back();
  const int64_t row_blocks = blocks_of(piece.begin.back(), row).size();
  int64_t most = std::max(kBlocks / row_blocks * row, kBlocks);
  if (!direct) most = std::min(most, kLoadSlabBytes / int64_t{sizeof(float)});
  for_each_slab(piece.size, most, [&](const Sizes& begin, const Sizes& size) {
    Sizes from = sum(piece.begin, begin);
    const int64_t first = from.back() % kMxfp4Block;
    const Interval stored = blocks_of(from.back(), size.back());
    from.back() = stored.begin;
    Sizes count = size;
    count.back() = stored.size();
    Sizes blocks_from = from, blocks_count = count;
    blocks_from.push_back(0);
    blocks_count.push_back(kMxfp4BlockBytes);
    const at::Tensor blocks = scratch(stored_, blocks_count, at::kByte);
    const at::Tensor scales = scratch(stored_, count, at::kByte, blocks.numel());
    files_.read_box_into(piece.source->tensors[0], blocks_from, blocks_count, blocks);
    files_.read_box_into(piece.source->tensors[1], from, count, scales);
    const at::Tensor target = part(place, begin, size);
    const at::Tensor values = direct ? target : scratch(values_, size, at::kFloat);
    decode_mxfp4_into(blocks, scales, first, values);
    if (!direct) target.copy_(values);
  });
}

void PieceReader::read(const Piece& piece, const at::Tensor& local) {
  const at::NoGradGuard no_grad;
  const at::Tensor place = place_of(piece, local);
  if (piece.source->kind == WeightSource::Kind::kMxfp4)
    read_mxfp4(piece, place);
  else
    read_plain(piece, place);
}

}  // namespace shardproof
