#include "mesh/mesh_shape.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

using Axes = std::vector<std::string>;
using Coordinates = std::vector<int64_t>;

TEST(MeshShape, LastAxisIsFastest) {
  const MeshShape mesh({{"dp_replicate", 2}, {"fsdp", 3}, {"tp", 4}});

  EXPECT_EQ(mesh.world_size(), 24);
  EXPECT_EQ(mesh.coordinates(0), (Coordinates{0, 0, 0}));
  EXPECT_EQ(mesh.coordinates(1), (Coordinates{0, 0, 1}));
  EXPECT_EQ(mesh.coordinates(4), (Coordinates{0, 1, 0}));
  EXPECT_EQ(mesh.coordinates(23), (Coordinates{1, 2, 3}));
  EXPECT_EQ(mesh.coordinate(17, "fsdp"), 1);
}

TEST(MeshShape, RankIsTheInverseOfCoordinates) {
  const MeshShape mesh({{"a", 3}, {"b", 1}, {"c", 2}, {"d", 5}});

  for (int64_t rank = 0; rank < mesh.world_size(); ++rank)
    EXPECT_EQ(mesh.rank(mesh.coordinates(rank)), rank);
}

TEST(MeshShape, TpMayBeTheOuterAxis) {
  const MeshShape mesh({{"tp", 2}, {"dp_replicate", 2}});

  EXPECT_EQ(mesh.coordinate(2, "tp"), 1);
  EXPECT_EQ(mesh.coordinate(2, "dp_replicate"), 0);
  EXPECT_EQ(mesh.rank({0, 1}), 1);
}

TEST(MeshShape, ProductOfAxesCountsInTheGivenOrder) {
  const MeshShape mesh({{"dp_replicate", 2}, {"fsdp", 3}, {"tp", 2}});
  const int64_t rank = mesh.rank({1, 2, 0});

  EXPECT_EQ(mesh.size(Axes{"fsdp", "dp_replicate"}), 6);
  EXPECT_EQ(mesh.coordinate(rank, Axes{"dp_replicate", "fsdp"}), 5);
  EXPECT_EQ(mesh.coordinate(rank, Axes{"fsdp", "dp_replicate"}), 5);
  EXPECT_EQ(mesh.coordinate(rank, Axes{"tp", "fsdp"}), 2);
  EXPECT_EQ(mesh.coordinate(rank, Axes{"fsdp", "tp"}), 4);
}

TEST(MeshShape, MissingAxisMeansSizeOne) {
  const MeshShape mesh({{"tp", 2}});

  EXPECT_FALSE(mesh.has("ep"));
  EXPECT_EQ(mesh.size("ep"), 1);
  EXPECT_EQ(mesh.coordinate(1, "ep"), 0);
  EXPECT_EQ(MeshShape().world_size(), 1);
  EXPECT_EQ(MeshShape().rank({}), 0);
}

TEST(MeshShape, RefusesWhatIsNoMesh) {
  EXPECT_THROW(MeshShape({{"tp", 0}}), InputError);
  EXPECT_THROW(MeshShape({{"tp", -2}}), InputError);
  EXPECT_THROW(MeshShape({{"", 2}}), InputError);
  EXPECT_THROW(MeshShape({{"tp", 2}, {"tp", 2}}), InputError);
  EXPECT_THROW(MeshShape({{"a", int64_t{1} << 40}, {"b", int64_t{1} << 40}}), InputError);
  EXPECT_THROW(MeshShape({{"tp", 2}}).coordinates(2), ContractError);
  EXPECT_THROW(MeshShape({{"tp", 2}}).rank({2}), ContractError);
}

TEST(MeshShape, PrintsAsALayout) {
  EXPECT_EQ(MeshShape({{"tp", 2}, {"fsdp", 3}}).to_string(), "tp=2,fsdp=3");
  EXPECT_EQ(MeshShape().to_string(), "");
}

}  // namespace
}  // namespace shardproof
