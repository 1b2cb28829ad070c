// A mesh of ranks with the communicators of its axes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "mesh/mesh_shape.h"

namespace shardproof {

class DeviceMesh {
 public:
  // Collective over `world`: makes the communicator of each axis; those of groups and blocks are
  // made when they are first asked for. Throws InputError (on every rank alike) where the sizes do
  // not multiply to the world.
  DeviceMesh(CommPtr world, MeshShape shape);

  const MeshShape& shape() const { return shape_; }
  int64_t rank() const { return world_->rank(); }
  int64_t coordinate(const std::string& axis) const { return shape_.coordinate(rank(), axis); }
  int64_t size(const std::string& axis) const { return shape_.size(axis); }
  const CommPtr& world() const { return world_; }

  // The ranks that differ from this one in `axis` only, ordered by its coordinate; named as the
  // axis. For an axis of size 1 or none: a communicator of this rank alone.
  Communicator& comm(const std::string& axis) const;
  // The ranks that differ in these axes only, ordered as given (outermost first); named "a*b".
  // Derived axes stand for what they are made of. Axes of size 1 vanish: with one other axis left
  // it is the communicator of that axis. Collective over the world at the first call for a list of
  // axes: call it on all ranks in one order (parallelize does).
  CommPtr group(const std::vector<std::string>& axes);
  // The block of `block` neighbours along `axis` that this rank belongs to, ordered by the
  // coordinate; named "axis/block". A block of the whole axis is the communicator of the axis.
  // Collective as group(). Throws ContractError where the axis does not fall into such blocks.
  CommPtr block(const std::string& axis, int64_t block);

 private:
  // The communicator kept under this name, made at the first call; a self communicator at size 1.
  CommPtr make(const std::string& name, int64_t size, int64_t color, int64_t key);

  CommPtr world_;
  MeshShape shape_;
  CommPtr alone_;
  std::map<std::string, CommPtr> comms_;
};

using MeshPtr = std::shared_ptr<DeviceMesh>;

}  // namespace shardproof
