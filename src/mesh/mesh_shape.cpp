#include "mesh/mesh_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace shardproof {
namespace {

// Ranks are ints in every communicator.
constexpr int64_t kMaxWorld = std::numeric_limits<int>::max();

}  // namespace

MeshShape::MeshShape(std::vector<MeshAxis> axes, std::vector<DerivedAxis> derived)
    : axes_(std::move(axes)), derived_(std::move(derived)) {
  int64_t product = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto& [name, size] = axes_[i];
    SP_VALIDATE(!name.empty(), "layout {}: an axis has no name; name it, as in fsdp=2",
                to_string());
    SP_VALIDATE(size >= 1, "layout {}: axis {} has size {}; sizes are 1 or more", to_string(), name,
                size);
    for (size_t j = 0; j < i; ++j)
      SP_VALIDATE(axes_[j].name != name, "layout {}: axis {} is given twice; give each axis once",
                  to_string(), name);
    SP_VALIDATE(size <= kMaxWorld / product, "layout {}: its sizes multiply to more than {} ranks",
                to_string(), kMaxWorld);
    product *= size;
  }
  for (const DerivedAxis& axis : derived_) {
    SP_EXPECT(!std::any_of(axes_.begin(), axes_.end(),
                           [&](const MeshAxis& a) { return a.name == axis.name; }),
              "the derived axis {} has the name of another", axis.name);
  }
}

std::vector<std::string> MeshShape::parts(const std::string& axis) const {
  for (const DerivedAxis& one : derived_)
    if (one.name == axis) return one.axes;
  return {axis};
}

std::vector<std::string> MeshShape::joined(const std::vector<std::string>& axes) const {
  std::vector<std::string> result;
  for (const std::string& axis : axes) {
    for (const std::string& part : parts(axis)) {
      SP_EXPECT(std::find(result.begin(), result.end(), part) == result.end(),
                "axis {} is named twice in the group {}", part, fmt::join(axes, "*"));
      if (size(part) > 1) result.push_back(part);
    }
  }
  return result;
}

int64_t MeshShape::world_size() const {
  int64_t product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

bool MeshShape::has(const std::string& axis) const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [&](const MeshAxis& a) { return a.name == axis; }) ||
         std::any_of(derived_.begin(), derived_.end(),
                     [&](const DerivedAxis& a) { return a.name == axis; });
}

int64_t MeshShape::size(const std::string& axis) const {
  for (const MeshAxis& a : axes_)
    if (a.name == axis) return a.size;
  for (const DerivedAxis& a : derived_)
    if (a.name == axis) return size(a.axes);
  return 1;
}

int64_t MeshShape::coordinate(int64_t rank, const std::string& axis) const {
  SP_EXPECT(rank >= 0 && rank < world_size(), "rank {} is not in the mesh {} of {} ranks", rank,
            to_string(), world_size());
  int64_t stride = 1;
  for (auto a = axes_.rbegin(); a != axes_.rend(); ++a) {
    if (a->name == axis) return rank / stride % a->size;
    stride *= a->size;
  }
  for (const DerivedAxis& a : derived_)
    if (a.name == axis) return coordinate(rank, a.axes);
  return 0;
}

std::vector<int64_t> MeshShape::coordinates(int64_t rank) const {
  std::vector<int64_t> result;
  result.reserve(axes_.size());
  for (const MeshAxis& axis : axes_) result.push_back(coordinate(rank, axis.name));
  return result;
}

int64_t MeshShape::rank(const std::vector<int64_t>& coordinates) const {
  SP_EXPECT(coordinates.size() == axes_.size(),
            "{} coordinates for the mesh {} of {} axes; give one an axis", coordinates.size(),
            to_string(), axes_.size());
  int64_t result = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    SP_EXPECT(coordinates[i] >= 0 && coordinates[i] < axes_[i].size,
              "coordinate {} is not on axis {} of size {}", coordinates[i], axes_[i].name,
              axes_[i].size);
    result = result * axes_[i].size + coordinates[i];
  }
  return result;
}

int64_t MeshShape::coordinate(int64_t rank, const std::vector<std::string>& axes) const {
  int64_t result = 0;
  for (const std::string& axis : axes) result = result * size(axis) + coordinate(rank, axis);
  return result;
}

int64_t MeshShape::size(const std::vector<std::string>& axes) const {
  int64_t product = 1;
  for (const std::string& axis : axes) product *= size(axis);
  return product;
}

std::string MeshShape::to_string() const {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes_) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace shardproof
