#include "checkpoint/pieces.h"

#include <ATen/ops/as_strided.h>

#include <algorithm>

#include "base/check.h"

namespace shardproof {
namespace {

using Kind = WeightSource::Kind;

// One dim of a source: which positions of it are wanted, and where they go.
struct Dim {
  Intervals wanted;
  int64_t target = 0;  // dim of the local tensor
  int64_t start = 0;   // local position of the first of them
  int64_t step = 1;
};

struct Wanted {
  std::vector<Dim> dims;
  std::vector<int64_t> fixed;  // local positions that stacks have chosen
};

// Calls use(interval, where its first position goes) for each interval of a dim.
template <class Use>
void for_each_interval(const Dim& dim, const Use& use) {
  int64_t start = dim.start;
  for (const Interval& interval : dim.wanted) {
    use(interval, start);
    start += interval.size() * dim.step;
  }
}

class Collector {
 public:
  void add(const BoundWeight& source, const Wanted& wanted) {
    for (const Dim& dim : wanted.dims)
      if (dim.wanted.empty()) return;
    switch (source.kind) {
      case Kind::kTensor:
      case Kind::kMxfp4:
        piece_ = {.source = &source, .begin = {}, .size = {}, .start = wanted.fixed, .axes = {}};
        return add_boxes(wanted, 0);
      case Kind::kStack:
        return add_stack(source, wanted);
      case Kind::kConcatenate:
        return add_concatenation(source, wanted);
      case Kind::kInterleave:
        return add_interleaved(source, wanted);
      case Kind::kSplit: {
        Wanted whole = wanted;
        for (Interval& interval : whole.dims[static_cast<size_t>(source.dim)].wanted)
          interval = {interval.begin + source.offset, interval.end + source.offset};
        return add(source.parts[0], whole);
      }
      case Kind::kTranspose: {
        Wanted turned = wanted;
        std::swap(turned.dims[turned.dims.size() - 1], turned.dims[turned.dims.size() - 2]);
        return add(source.parts[0], turned);
      }
    }
  }

  std::vector<Piece> pieces;

 private:
  // The product of the intervals.
  void add_boxes(const Wanted& wanted, size_t d) {
    if (d == wanted.dims.size()) return pieces.push_back(piece_);
    const Dim& dim = wanted.dims[d];
    for_each_interval(dim, [&](const Interval& interval, int64_t start) {
      piece_.begin.push_back(interval.begin);
      piece_.size.push_back(interval.size());
      piece_.start[static_cast<size_t>(dim.target)] = start;
      piece_.axes.push_back({dim.target, dim.step});
      add_boxes(wanted, d + 1);
      piece_.begin.pop_back();
      piece_.size.pop_back();
      piece_.axes.pop_back();
    });
  }

  void add_stack(const BoundWeight& source, const Wanted& wanted) {
    const Dim& first = wanted.dims[0];
    Wanted inner = wanted;
    inner.dims.erase(inner.dims.begin());
    for_each_interval(first, [&](const Interval& interval, int64_t start) {
      for (int64_t i = interval.begin; i < interval.end; ++i) {
        inner.fixed[static_cast<size_t>(first.target)] = start + (i - interval.begin) * first.step;
        add(source.parts[static_cast<size_t>(i)], inner);
      }
    });
  }

  void add_concatenation(const BoundWeight& source, const Wanted& wanted) {
    const auto d = static_cast<size_t>(source.dim);
    int64_t offset = 0;
    for (const BoundWeight& part : source.parts) {
      const int64_t end = offset + part.shape[d];
      for_each_interval(wanted.dims[d], [&](const Interval& interval, int64_t start) {
        const Interval both{std::max(interval.begin, offset), std::min(interval.end, end)};
        if (both.size() <= 0) return;
        Wanted inner = wanted;
        inner.dims[d].wanted = {{both.begin - offset, both.end - offset}};
        inner.dims[d].start = start + (both.begin - interval.begin) * wanted.dims[d].step;
        add(part, inner);
      });
      offset = end;
    }
  }

  void add_interleaved(const BoundWeight& source, const Wanted& wanted) {
    const auto d = static_cast<size_t>(source.dim);
    const auto count = static_cast<int64_t>(source.parts.size());
    for (int64_t p = 0; p < count; ++p) {
      for_each_interval(wanted.dims[d], [&](const Interval& interval, int64_t start) {
        // Positions i * count + p.
        const auto from = [&](int64_t position) { return (position - p + count - 1) / count; };
        const Interval own{from(interval.begin), from(interval.end)};
        if (own.size() <= 0) return;
        Wanted inner = wanted;
        Dim& dim = inner.dims[d];
        dim.wanted = {own};
        dim.start = start + (own.begin * count + p - interval.begin) * dim.step;
        dim.step *= count;
        add(source.parts[static_cast<size_t>(p)], inner);
      });
    }
  }

  Piece piece_;  // the box in the making
};

}  // namespace

std::vector<Piece> pieces_of(const BoundWeight& weight, const Region& region) {
  SP_EXPECT(region.size() == weight.shape.size(), "a region of {} dims of a weight of {}",
            region.size(), weight.shape.size());
  Wanted wanted{.dims = {}, .fixed = std::vector<int64_t>(region.size(), 0)};
  for (size_t d = 0; d < region.size(); ++d)
    wanted.dims.push_back({normalized(region[d]), static_cast<int64_t>(d)});
  Collector collector;
  collector.add(weight, wanted);
  return std::move(collector.pieces);
}

at::Tensor place_of(const Piece& piece, const at::Tensor& local) {
  int64_t offset = local.storage_offset();
  for (size_t d = 0; d < piece.start.size(); ++d)
    offset += piece.start[d] * local.stride(static_cast<int64_t>(d));
  std::vector<int64_t> strides;
  for (const Piece::Axis& axis : piece.axes) strides.push_back(local.stride(axis.dim) * axis.step);
  return at::as_strided(local, piece.size, strides, offset);
}

}  // namespace shardproof
