#include "checkpoint/pieces.h"

#include "checkpoint/read_piece.h"
#include "checkpoint/testing.h"
#include "io/mxfp4.h"

namespace shardproof {
namespace {

using testing::NamedList;
using testing::Shape;
using Kind = WeightSource::Kind;

// The whole, by tensor operations: what regions of it are compared with.
at::Tensor evaluate(const BoundWeight& weight, const CheckpointFiles& files, at::ScalarType dtype) {
  std::vector<at::Tensor> parts;
  for (const BoundWeight& part : weight.parts) parts.push_back(evaluate(part, files, dtype));
  switch (weight.kind) {
    case Kind::kTensor:
      return files.read(weight.tensors[0]).to(dtype);
    case Kind::kMxfp4:
      return decode_mxfp4(files.read(weight.tensors[0]), files.read(weight.tensors[1]),
                          dtype == at::kHalf ? at::kFloat : dtype)
          .to(dtype);
    case Kind::kStack:
      return at::stack(parts);
    case Kind::kConcatenate:
      return at::cat(parts, weight.dim);
    case Kind::kInterleave:
      return at::stack(parts, weight.dim + 1).flatten(weight.dim, weight.dim + 1);
    case Kind::kSplit:
      return parts[0].narrow(weight.dim, weight.offset,
                             weight.shape[static_cast<size_t>(weight.dim)]);
    case Kind::kTranspose:
      return parts[0].transpose(-1, -2);
  }
  return {};
}

// A random expression for a shape; tensors are called "w<number>", and one component more a stack.
class RandomSource {
 public:
  explicit RandomSource(std::mt19937& random) : random_(random) {}

  WeightSource make(const Shape& shape, int depth, std::string stars) {
    const int64_t dims = static_cast<int64_t>(shape.size());
    const int64_t dim = below(dims);
    const int64_t width = shape[static_cast<size_t>(dim)];
    Shape inner = shape;
    int64_t& size = inner[static_cast<size_t>(dim)];
    switch (depth == 0 ? 0 : below(6)) {
      case 1:
        if (dims < 2 || shape[0] > 5) break;
        return weight::stack(make({shape.begin() + 1, shape.end()}, depth - 1, stars + ".*"));
      case 2: {
        // The size of a stack cannot follow from its tensors: no concatenation along such a dim.
        if (dim == 0 && dims > 1) break;
        const int64_t first = 1 + below(width);
        size = first;
        std::vector<WeightSource> parts = {make(inner, 0, stars)};
        size = width - first;
        if (size > 0) parts.push_back(make(inner, 0, stars));
        return weight::concatenate(dim, std::move(parts));
      }
      case 3: {
        const int64_t count = width % 3 == 0 ? 3 : 2;
        if (width % count != 0) break;
        size /= count;
        std::vector<WeightSource> parts;
        for (int64_t i = 0; i < count; ++i) parts.push_back(make(inner, depth - 1, stars));
        return weight::interleave(dim, std::move(parts));
      }
      case 4: {
        const int64_t before = below(4), after = below(4);
        size += before + after;
        return weight::split(dim, {before, width, after}, 1, make(inner, depth - 1, stars));
      }
      case 5:
        if (dims < 2) break;
        std::swap(inner[inner.size() - 1], inner[inner.size() - 2]);
        return weight::transpose(make(inner, depth - 1, stars));
      default:
        break;
    }
    const std::string name = "w" + std::to_string(shapes_.size());
    const bool mxfp4 = shape.back() % 32 == 0 && below(3) > 0;
    shapes_.push_back({shape, mxfp4});
    return mxfp4 ? weight::mxfp4("b." + name + stars, "s." + name + stars)
                 : weight::tensor("t." + name + stars);
  }

  NamedList tensors(const BoundWeight& weight) {
    NamedList result;
    for (const std::string& name : tensor_names(weight)) {
      const std::string number = name.substr(3, name.find('.', 2) - 3);
      auto [shape, mxfp4] = shapes_.at(static_cast<size_t>(std::stoi(number)));
      if (!mxfp4) {
        const at::ScalarType dtype = below(2) == 0 ? at::kFloat : at::kBFloat16;
        result.emplace_back(name, testing::values(shape, below(100)).to(dtype));
        continue;
      }
      const NamedList pair = testing::mxfp4_pair("", shape, random_);
      result.emplace_back(name, pair[name[0] == 'b' ? 0 : 1].second);
    }
    return result;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  std::mt19937& random_;
  std::vector<std::pair<Shape, bool>> shapes_;
};

class PiecesTest : public testing::FileTest {};

TEST_F(PiecesTest, AnyRegionOfAnySourceIsThatOfTheWhole) {
  std::mt19937 random(7);
  const std::vector<Shape> shapes = {{4, 6, 64}, {3, 64, 6}, {5, 7}, {2, 3, 4, 32}, {96, 5}, {12}};
  int filled = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Shape& shape = shapes[random() % shapes.size()];
    RandomSource maker(random);
    BoundWeight weight = bind_weight(maker.make(shape, 3, ""), {}, shape);
    const CheckpointFiles files = write(maker.tensors(weight));
    check_against_files(weight, files);
    ASSERT_EQ(weight.shape, shape);
    PieceReader reader(files);
    for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble, at::kHalf}) {
      const at::Tensor whole = evaluate(weight, files, dtype);
      const Region region = testing::random_region(shape, random);
      const at::Tensor local = at::full(local_shape(region), NAN, dtype);
      for (const Piece& piece : pieces_of(weight, region)) reader.read(piece, local);
      ASSERT_TRUE(at::equal(local, testing::take(whole, region)));
      filled += local.numel() > 0;
    }
  }
  EXPECT_GT(filled, 200);
}

// gate and up in turns along dim 1, each a stack of two; the region [1, 2) x [1, 4).
TEST_F(PiecesTest, BoxesAndWhereTheyLand) {
  const BoundWeight weight = bind_weight(
      weight::interleave(
          1, {weight::stack(weight::tensor("*.gate")), weight::stack(weight::tensor("*.up"))}),
      {}, {2, 6});

  const std::vector<Piece> pieces = pieces_of(weight, {{{1, 2}}, {{1, 4}}});

  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].source->tensors[0], "1.gate");  // position 2
  EXPECT_EQ(pieces[0].begin, (Shape{1}));
  EXPECT_EQ(pieces[0].size, (Shape{1}));
  EXPECT_EQ(pieces[0].start, (Shape{0, 1}));
  EXPECT_EQ(pieces[1].source->tensors[0], "1.up");  // positions 1 and 3
  EXPECT_EQ(pieces[1].begin, (Shape{0}));
  EXPECT_EQ(pieces[1].size, (Shape{2}));
  EXPECT_EQ(pieces[1].start, (Shape{0, 0}));
  EXPECT_EQ(pieces[1].axes[0].dim, 1);
  EXPECT_EQ(pieces[1].axes[0].step, 2);
}

TEST_F(PiecesTest, OnlyTheBytesOfTheRegionAreRead) {
  std::mt19937 random(3);
  NamedList tensors = testing::mxfp4_pair("w", {2, 8192, 320}, random);
  const CheckpointFiles files = write(tensors);
  BoundWeight weight = bind_weight(weight::transpose(weight::mxfp4("w")), {}, {2, 320, 8192});
  check_against_files(weight, files);
  PieceReader reader(files);
  const auto bytes_of = [&](const Region& region) {
    const int64_t before = files.bytes_read();
    const at::Tensor local = at::empty(local_shape(region), at::kBFloat16);
    for (const Piece& piece : pieces_of(weight, region)) reader.read(piece, local);
    return files.bytes_read() - before;
  };

  // 1000 of the stored rows: 10 blocks of 16 + 1 bytes each.
  EXPECT_EQ(bytes_of({{{1, 2}}, {{0, 320}}, {{5000, 6000}}}), 1000 * 10 * 17);
  EXPECT_EQ(bytes_of({{{1, 2}}, {}, {{5000, 6000}}}), 0);
}

}  // namespace
}  // namespace shardproof
