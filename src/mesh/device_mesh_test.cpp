#include "mesh/device_mesh.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/threads/run_ranks.h"

namespace shardproof {
namespace {

const Site kSite{"mesh_test", "ranks", "setup"};

// The world ranks that a communicator joins, in its order.
std::vector<int64_t> members(Communicator& comm, int64_t world_rank) {
  const at::Tensor mine = at::full({1}, world_rank, at::kLong);
  const at::Tensor all = at::empty({comm.size()}, at::kLong);
  comm.all_gather(all, mine, std::vector<int64_t>(static_cast<size_t>(comm.size()), 1), kSite)
      .wait();
  return {all.data_ptr<int64_t>(), all.data_ptr<int64_t>() + all.numel()};
}

using Ranks = std::vector<int64_t>;

TEST(DeviceMesh, AxesJoinTheRanksThatDifferInThemOnly) {
  run_ranks(6, [](CommPtr world) {
    const DeviceMesh mesh(world, MeshShape({{"fsdp", 3}, {"tp", 2}}));
    const int64_t fsdp = mesh.rank() / 2;
    const int64_t tp = mesh.rank() % 2;

    EXPECT_EQ(mesh.coordinate("fsdp"), fsdp);
    EXPECT_EQ(mesh.coordinate("tp"), tp);
    EXPECT_EQ(mesh.comm("tp").rank(), tp);
    EXPECT_EQ(mesh.comm("tp").name(), "tp");
    EXPECT_EQ(members(mesh.comm("tp"), mesh.rank()), (Ranks{2 * fsdp, 2 * fsdp + 1}));
    EXPECT_EQ(members(mesh.comm("fsdp"), mesh.rank()), (Ranks{tp, 2 + tp, 4 + tp}));
  });
}

TEST(DeviceMesh, TpMayBeTheOuterAxis) {
  run_ranks(4, [](CommPtr world) {
    const DeviceMesh mesh(world, MeshShape({{"tp", 2}, {"dp_replicate", 2}}));
    const int64_t rank = mesh.rank();

    EXPECT_EQ(members(mesh.comm("tp"), rank), (Ranks{rank % 2, rank % 2 + 2}));
    EXPECT_EQ(members(mesh.comm("dp_replicate"), rank), (Ranks{rank / 2 * 2, rank / 2 * 2 + 1}));
  });
}

TEST(DeviceMesh, GroupsJoinSeveralAxesInTheGivenOrder) {
  run_ranks(8, [](CommPtr world) {
    DeviceMesh mesh(world, MeshShape({{"dp_replicate", 2}, {"fsdp", 2}, {"tp", 2}}));
    const int64_t tp = mesh.coordinate("tp");
    const CommPtr data = mesh.group({"dp_replicate", "fsdp"});
    const CommPtr swapped = mesh.group({"fsdp", "dp_replicate"});

    EXPECT_EQ(data->name(), "dp_replicate*fsdp");
    EXPECT_EQ(members(*data, mesh.rank()), (Ranks{tp, 2 + tp, 4 + tp, 6 + tp}));
    EXPECT_EQ(members(*swapped, mesh.rank()), (Ranks{tp, 4 + tp, 2 + tp, 6 + tp}));
    EXPECT_EQ(mesh.group({"dp_replicate", "fsdp"}), data);
    EXPECT_EQ(mesh.group({"tp"}).get(), &mesh.comm("tp"));
    EXPECT_THROW(mesh.group({"tp", "tp"}), ContractError);
  });
}

TEST(DeviceMesh, BlocksAreNeighboursAlongAnAxis) {
  run_ranks(8, [](CommPtr world) {
    DeviceMesh mesh(world, MeshShape({{"tp", 4}, {"fsdp", 2}}));
    const int64_t first = mesh.coordinate("tp") / 2 * 2;
    const int64_t fsdp = mesh.coordinate("fsdp");
    const CommPtr pair = mesh.block("tp", 2);

    EXPECT_EQ(pair->name(), "tp/2");
    EXPECT_EQ(members(*pair, mesh.rank()), (Ranks{2 * first + fsdp, 2 * (first + 1) + fsdp}));
    EXPECT_EQ(mesh.block("tp", 4).get(), &mesh.comm("tp"));
    EXPECT_EQ(mesh.block("tp", 1)->size(), 1);
    EXPECT_THROW(mesh.block("tp", 3), ContractError);
  });
}

TEST(DeviceMesh, AxesOfSizeOneAreThisRankAlone) {
  run_ranks(2, [](CommPtr world) {
    DeviceMesh mesh(world, MeshShape({{"dp_replicate", 1}, {"fsdp", 2}, {"tp", 1}}));

    EXPECT_EQ(mesh.comm("tp").size(), 1);
    EXPECT_EQ(mesh.comm("tp").name(), "tp");
    EXPECT_EQ(mesh.comm("no such axis").size(), 1);
    EXPECT_EQ(members(mesh.comm("tp"), mesh.rank()), Ranks{mesh.rank()});
    EXPECT_EQ(mesh.group({"dp_replicate", "tp"})->size(), 1);
    EXPECT_EQ(mesh.group({"dp_replicate", "fsdp"}).get(), &mesh.comm("fsdp"));
  });
}

TEST(DeviceMesh, RefusesSizesThatDoNotMultiplyToTheWorld) {
  run_ranks(4, [](CommPtr world) {
    try {
      const DeviceMesh mesh(world, MeshShape({{"tp", 2}}));
      FAIL() << "tp=2 in a world of 4 was accepted";
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("tp=2"), message.npos) << message;
      EXPECT_NE(message.find("multiply to 2"), message.npos) << message;
      EXPECT_NE(message.find("4 ranks"), message.npos) << message;
    }
    EXPECT_NO_THROW(DeviceMesh(world, MeshShape({{"tp", 2}, {"dp_replicate", 2}})));
  });
}

}  // namespace
}  // namespace shardproof
