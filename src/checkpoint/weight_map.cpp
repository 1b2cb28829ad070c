#include "checkpoint/weight_map.h"

#include <utility>

namespace shardproof::weight {

using Kind = WeightSource::Kind;

WeightSource tensor(std::string name) { return {.tensors = {std::move(name)}}; }

WeightSource mxfp4(std::string blocks, std::string scales) {
  return {.kind = Kind::kMxfp4, .tensors = {std::move(blocks), std::move(scales)}};
}

WeightSource mxfp4(const std::string& name) { return mxfp4(name + "_blocks", name + "_scales"); }

WeightSource stack(WeightSource each) { return {.kind = Kind::kStack, .parts = {std::move(each)}}; }

WeightSource concatenate(int64_t dim, std::vector<WeightSource> parts) {
  return {.kind = Kind::kConcatenate, .parts = std::move(parts), .dim = dim};
}

WeightSource interleave(int64_t dim, std::vector<WeightSource> parts) {
  return {.kind = Kind::kInterleave, .parts = std::move(parts), .dim = dim};
}

WeightSource split(int64_t dim, std::vector<int64_t> sizes, int64_t index, WeightSource whole) {
  return {.kind = Kind::kSplit,
          .parts = {std::move(whole)},
          .dim = dim,
          .split_sizes = std::move(sizes),
          .split_index = index};
}

WeightSource transpose(WeightSource source) {
  return {.kind = Kind::kTranspose, .parts = {std::move(source)}};
}

}  // namespace shardproof::weight
