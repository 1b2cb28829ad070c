#include "checkpoint/bound_weight.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/names.h"
#include "io/mxfp4.h"
#include "io/quote.h"

namespace shardproof {
namespace {

using Kind = WeightSource::Kind;

std::string with_numbers(const std::string& pattern, const std::vector<std::string>& numbers) {
  std::vector<std::string> parts = split(pattern, '.');
  size_t used = 0;
  for (std::string& part : parts) {
    if (part != "*") continue;
    SP_EXPECT(used < numbers.size(),
              "'{}' has more `*` than its rule's pattern and stacks give numbers for", pattern);
    part = numbers[used++];
  }
  SP_EXPECT(used == numbers.size(), "'{}' has {} `*`, its rule's pattern and stacks have {}",
            pattern, used, numbers.size());
  return fmt::format("{}", fmt::join(parts, "."));
}

int64_t checked_dim(const WeightSource& source, const std::vector<int64_t>& shape, int64_t least) {
  const auto dims = static_cast<int64_t>(shape.size());
  SP_EXPECT(dims >= least && source.dim >= 0 && (least == 0 || source.dim < dims),
            "a weight rule changes dim {} of a tensor of shape [{}]", source.dim,
            fmt::join(shape, ", "));
  return source.dim;
}

// A shape as far as it is known.
std::string shown(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + (size == kUnknownSize ? "?" : std::to_string(size));
  return "[" + text + "]";
}

std::string place(const CheckpointFiles& files, const std::string& tensor) {
  return fmt::format("{}: the tensor {}", files.file_of(tensor).path().string(), quote(tensor));
}

void check_shape(const CheckpointFiles& files, const std::string& tensor,
                 const std::vector<int64_t>& want) {
  const std::vector<int64_t>& have = files.entry(tensor).shape;
  const bool fits = std::equal(have.begin(), have.end(), want.begin(), want.end(),
                               [](int64_t a, int64_t b) { return b == kUnknownSize || a == b; });
  SP_VALIDATE(fits, "{} has shape {}, the model's has {}", place(files, tensor), shown(have),
              shown(want));
}

void check_dtype(const CheckpointFiles& files, const std::string& tensor, Kind kind) {
  const FileDtype dtype = files.entry(tensor).dtype;
  if (kind == Kind::kMxfp4) {
    SP_VALIDATE(dtype == FileDtype::kU8, "{} is of {}, MXFP4 is stored as U8", place(files, tensor),
                dtype_name(dtype));
    return;
  }
  const bool plain = dtype == FileDtype::kF16 || dtype == FileDtype::kBF16 ||
                     dtype == FileDtype::kF32 || dtype == FileDtype::kF64;
  SP_VALIDATE(plain,
              "{} is of {}, where the model needs values of 16 bits or more (F16, BF16, F32, F64); "
              "quantized weights are known in the form of MXFP4 only",
              place(files, tensor), dtype_name(dtype));
}

void check_tensors(BoundWeight& weight, const CheckpointFiles& files) {
  for (const std::string& tensor : weight.tensors) check_dtype(files, tensor, weight.kind);
  if (weight.kind == Kind::kTensor) {
    check_shape(files, weight.tensors[0], weight.shape);
    weight.shape = files.entry(weight.tensors[0]).shape;
    return;
  }
  std::vector<int64_t> scales = weight.shape;
  int64_t& last = scales.back();
  SP_VALIDATE(last == kUnknownSize || last % kMxfp4Block == 0,
              "{} holds blocks of {} values, the model's last dim there has {}",
              place(files, weight.tensors[0]), kMxfp4Block, last);
  if (last != kUnknownSize) last /= kMxfp4Block;
  std::vector<int64_t> blocks = scales;
  blocks.push_back(kMxfp4BlockBytes);
  check_shape(files, weight.tensors[0], blocks);
  scales = files.entry(weight.tensors[0]).shape;
  scales.pop_back();
  check_shape(files, weight.tensors[1], scales);
  weight.shape = scales;
  weight.shape.back() *= kMxfp4Block;
}

// Parts known, the whole must have the sizes that the model wants.
void join_shapes(BoundWeight& weight, const CheckpointFiles& files) {
  const auto dim = static_cast<size_t>(weight.dim);
  std::vector<int64_t> shape = weight.parts[0].shape;
  int64_t total = 0;
  for (const BoundWeight& part : weight.parts) {
    total += part.shape[dim];
    for (size_t d = 0; d < shape.size(); ++d)
      SP_VALIDATE((d == dim && weight.kind == Kind::kConcatenate) || part.shape[d] == shape[d],
                  "{} gives {}, {} beside it {}", place(files, tensor_names(part)[0]),
                  shown(part.shape), quote(tensor_names(weight.parts[0])[0]), shown(shape));
  }
  shape[dim] = total;
  const std::string first = tensor_names(weight)[0];
  SP_VALIDATE(weight.shape[dim] == kUnknownSize || weight.shape[dim] == total,
              "{} and those joined with it have {} positions of dim {}, the model's has {}",
              place(files, first), total, weight.dim, weight.shape[dim]);
  weight.shape = shape;
}

}  // namespace

BoundWeight bind_weight(const WeightSource& source, const std::vector<std::string>& numbers,
                        const std::vector<int64_t>& shape) {
  BoundWeight bound{
      .kind = source.kind, .tensors = {}, .parts = {}, .dim = source.dim, .shape = shape};
  for (const std::string& tensor : source.tensors)
    bound.tensors.push_back(with_numbers(tensor, numbers));
  std::vector<int64_t> inner = shape;
  const auto bind_parts = [&] {
    for (const WeightSource& part : source.parts)
      bound.parts.push_back(bind_weight(part, numbers, inner));
  };
  switch (source.kind) {
    case Kind::kTensor:
      break;
    case Kind::kMxfp4:
      SP_EXPECT(!shape.empty(), "a scalar cannot be MXFP4");
      break;
    case Kind::kStack:
      SP_EXPECT(!shape.empty() && shape[0] != kUnknownSize,
                "a stack needs to know its size, of a tensor of shape {}", shown(shape));
      inner.erase(inner.begin());
      for (int64_t i = 0; i < shape[0]; ++i) {
        std::vector<std::string> all = numbers;
        all.push_back(std::to_string(i));
        bound.parts.push_back(bind_weight(source.parts[0], all, inner));
      }
      break;
    case Kind::kConcatenate:
    case Kind::kInterleave: {
      int64_t& size = inner[static_cast<size_t>(checked_dim(source, shape, 1))];
      const auto count = static_cast<int64_t>(source.parts.size());
      SP_EXPECT(count > 0, "a concatenation of nothing");
      SP_EXPECT(source.kind == Kind::kConcatenate || size == kUnknownSize || size % count == 0,
                "{} interleaved parts of a dim of {}", count, size);
      size =
          source.kind == Kind::kConcatenate || size == kUnknownSize ? kUnknownSize : size / count;
      bind_parts();
      break;
    }
    case Kind::kSplit: {
      int64_t& size = inner[static_cast<size_t>(checked_dim(source, shape, 1))];
      const std::vector<int64_t>& sizes = source.split_sizes;
      const auto index = static_cast<size_t>(source.split_index);
      SP_EXPECT(index < sizes.size() && (size == kUnknownSize || size == sizes[index]),
                "part {} of a split into [{}] cannot be {} wide", source.split_index,
                fmt::join(sizes, ", "), size);
      bound.offset = std::accumulate(sizes.begin(), sizes.begin() + source.split_index, int64_t{0});
      bound.shape[static_cast<size_t>(source.dim)] = sizes[index];
      size = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      bind_parts();
      break;
    }
    case Kind::kTranspose:
      SP_EXPECT(shape.size() >= 2, "a tensor of shape {} cannot be transposed", shown(shape));
      std::swap(inner[inner.size() - 1], inner[inner.size() - 2]);
      bind_parts();
      break;
  }
  return bound;
}

std::vector<std::string> tensor_names(const BoundWeight& weight) {
  std::vector<std::string> names = weight.tensors;
  for (const BoundWeight& part : weight.parts) {
    const std::vector<std::string> inner = tensor_names(part);
    names.insert(names.end(), inner.begin(), inner.end());
  }
  return names;
}

void check_against_files(BoundWeight& weight, const CheckpointFiles& files) {
  if (!weight.tensors.empty()) return check_tensors(weight, files);
  for (BoundWeight& part : weight.parts) check_against_files(part, files);
  if (weight.parts.empty()) return;  // a stack of none
  const std::vector<int64_t>& inner = weight.parts[0].shape;
  switch (weight.kind) {
    case Kind::kStack:
      for (const BoundWeight& part : weight.parts)
        SP_VALIDATE(part.shape == inner, "{} has shape {}, others of its stack {}",
                    place(files, tensor_names(part)[0]), shown(part.shape), shown(inner));
      std::copy(inner.begin(), inner.end(), weight.shape.begin() + 1);
      break;
    case Kind::kConcatenate:
    case Kind::kInterleave:
      join_shapes(weight, files);
      break;
    case Kind::kTranspose:
      weight.shape = inner;
      std::swap(weight.shape[inner.size() - 1], weight.shape[inner.size() - 2]);
      break;
    case Kind::kSplit: {
      const int64_t size = weight.shape[static_cast<size_t>(weight.dim)];
      weight.shape = inner;
      weight.shape[static_cast<size_t>(weight.dim)] = size;
      break;
    }
    case Kind::kTensor:
    case Kind::kMxfp4:
      break;
  }
}

}  // namespace shardproof
