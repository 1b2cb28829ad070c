#include "mesh/device_mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "comm/self.h"

namespace shardproof {

DeviceMesh::DeviceMesh(CommPtr world, MeshShape shape)
    : world_(std::move(world)), shape_(std::move(shape)) {
  SP_EXPECT(world_ != nullptr, "a mesh needs the communicator of its world; none was given");
  SP_VALIDATE(
      shape_.world_size() == world_->size(),
      "layout {}: its sizes multiply to {}, but the world has {} ranks; name every axis (fsdp, "
      "dp_replicate, tp, ...) so that they multiply to {}, or start {} ranks",
      shape_.to_string(), shape_.world_size(), world_->size(), world_->size(), shape_.world_size());
  alone_ = make_self_communicator("self");
  for (const MeshAxis& axis : shape_.axes()) group({axis.name});
}

Communicator& DeviceMesh::comm(const std::string& axis) const {
  const auto found = comms_.find(axis);
  return found == comms_.end() ? *alone_ : *found->second;
}

CommPtr DeviceMesh::group(const std::vector<std::string>& axes) {
  std::vector<std::string> joined = shape_.joined(axes);
  // Axes of size 1 vanish, so that a group of one real axis is the communicator of that axis.
  if (joined.empty()) joined = axes;
  std::vector<int64_t> others = shape_.coordinates(rank());
  for (size_t i = 0; i < others.size(); ++i)
    if (std::count(joined.begin(), joined.end(), shape_.axes()[i].name)) others[i] = 0;
  return make(fmt::format("{}", fmt::join(joined, "*")), shape_.size(joined), shape_.rank(others),
              shape_.coordinate(rank(), joined));
}

CommPtr DeviceMesh::block(const std::string& axis, int64_t block) {
  const int64_t size = shape_.size(axis);
  SP_EXPECT(block >= 1 && size % block == 0, "axis {} of size {} does not fall into blocks of {}",
            axis, size, block);
  if (block == size) return group({axis});
  SP_EXPECT(shape_.parts(axis).size() == 1, "blocks of the derived axis {} are not supported",
            axis);
  // The lowest rank of the block names it: it is in no other block of any row of this axis.
  std::vector<int64_t> first = shape_.coordinates(rank());
  for (size_t i = 0; i < first.size(); ++i)
    if (shape_.axes()[i].name == axis) first[i] -= first[i] % block;
  return make(fmt::format("{}/{}", axis, block), block, shape_.rank(first),
              coordinate(axis) % block);
}

CommPtr DeviceMesh::make(const std::string& name, int64_t size, int64_t color, int64_t key) {
  CommPtr& comm = comms_[name];
  if (comm == nullptr)
    comm = size == 1 ? make_self_communicator(name)
                     : world_->split(static_cast<int>(color), static_cast<int>(key), name);
  SP_ENSURE(comm->size() == size,
            "the communicator {} has {} ranks instead of {}; all ranks must ask for the same "
            "groups in one order",
            name, comm->size(), size);
  return comm;
}

}  // namespace shardproof
