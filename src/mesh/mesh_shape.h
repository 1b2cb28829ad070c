// Named axes and their sizes, outermost first: rank <-> coordinates. Pure, no communication.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

// A name for the product of axes, outermost first: "ep" = {"ep_fsdp", "tp"}.
struct DerivedAxis {
  std::string name;
  std::vector<std::string> axes;
  bool operator==(const DerivedAxis&) const = default;
};

class MeshShape {
 public:
  MeshShape() = default;  // no axes: a world of one rank
  // Throws InputError for a size below 1 or a name given twice.
  explicit MeshShape(std::vector<MeshAxis> axes, std::vector<DerivedAxis> derived = {});

  // Those that ranks are counted by; derived ones are not among them.
  const std::vector<MeshAxis>& axes() const { return axes_; }
  // What an axis is made of: itself, or for a derived one its axes.
  std::vector<std::string> parts(const std::string& axis) const;
  // The parts of these axes that have more than one coordinate, in order, each once.
  std::vector<std::string> joined(const std::vector<std::string>& axes) const;
  int64_t world_size() const;
  bool has(const std::string& axis) const;
  // 1 for an axis that the mesh does not have: an axis of size 1 and none at all mean the same.
  int64_t size(const std::string& axis) const;

  // Along `axis`; 0 for an axis that the mesh does not have.
  int64_t coordinate(int64_t rank, const std::string& axis) const;
  std::vector<int64_t> coordinates(int64_t rank) const;
  int64_t rank(const std::vector<int64_t>& coordinates) const;

  // The coordinate of `rank` on the product of some axes (outermost first as given), and its size.
  int64_t coordinate(int64_t rank, const std::vector<std::string>& axes) const;
  int64_t size(const std::vector<std::string>& axes) const;

  // "dp_replicate=2,tp=2"
  std::string to_string() const;
  bool operator==(const MeshShape&) const = default;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<DerivedAxis> derived_;
};

}  // namespace shardproof
