#include "tensor/redistribute.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/memory_meter.h"
#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "tensor/dtensor.h"
#include "tensor/redistribute_test_support.h"

namespace shardproof {
namespace {

const Site kSite{"redistribute_test", "tensor", "forward"};

MeshPtr make_mesh(const CommPtr& world, const MeshShape& shape) {
  return std::make_shared<DeviceMesh>(world, shape);
}

at::Tensor rows(int64_t count) { return at::arange(count, at::kDouble).view({count, 1}); }

// A column cut over ranks that do not divide it: the global size stays, and so do the last rows.
TEST(Redistribute, UnevenShardsKeepTheGlobalSize) {
  run_ranks(3, [](const CommPtr& world) {
    const MeshPtr mesh = make_mesh(world, MeshShape({{"tp", 3}}));
    const DTensor ten = from_whole(rows(10), mesh, {{"tp", shard(0)}});
    const DTensor four = from_whole(rows(4), mesh, {{"tp", shard(0)}});
    const DTensor two = from_whole(rows(2), mesh, {{"tp", shard(0)}});

    EXPECT_EQ(ten.local.size(0), mesh->rank() == 0 ? 4 : 3);
    EXPECT_EQ(four.local.size(0), mesh->rank() == 0 ? 2 : 1);
    EXPECT_EQ(two.local.size(0), mesh->rank() == 2 ? 0 : 1);
    EXPECT_EQ(ten.shape, (std::vector<int64_t>{10, 1}));
    EXPECT_TRUE(at::equal(full(ten, kSite), rows(10)));
    EXPECT_TRUE(at::equal(full(four, kSite), rows(4)));
    EXPECT_TRUE(at::equal(full(two, kSite), rows(2)));
  });
}

// One dim cut first by tp, then by fsdp, whichever axis is outer in the mesh.
TEST(Redistribute, NestedShardsOfOneDimKeepTheRowOrder) {
  for (const MeshShape& shape :
       {MeshShape({{"fsdp", 2}, {"tp", 2}}), MeshShape({{"tp", 2}, {"fsdp", 2}})}) {
    run_ranks(4, [&](const CommPtr& world) {
      const MeshPtr mesh = make_mesh(world, shape);
      const DTensor nested = from_whole(rows(8), mesh, {{"tp", shard(0)}, {"fsdp", shard(0)}});
      const int64_t first = 4 * mesh->coordinate("tp") + 2 * mesh->coordinate("fsdp");

      EXPECT_TRUE(at::equal(nested.local, rows(8).slice(0, first, first + 2)));
      EXPECT_TRUE(at::equal(full(nested, kSite), rows(8)));
      const DTensor other = redistribute(nested, {{"fsdp", shard(0)}, {"tp", shard(0)}}, kSite);
      EXPECT_TRUE(at::equal(full(other, kSite), rows(8)));
      EXPECT_TRUE(at::equal(redistribute(other, nested.placements, kSite).local, nested.local));
    });
  }
}

TEST(Redistribute, LocalConversionsMoveNothing) {
  run_ranks(4, [](const CommPtr& world) {
    const auto recorder = std::make_shared<Recorder>();
    const MeshPtr mesh = make_mesh(record(world, recorder), MeshShape({{"fsdp", 2}, {"tp", 2}}));
    recorder->clear();
    const DTensor whole{rows(9), {9, 1}, mesh, {}};
    const DTensor shards = redistribute(whole, {{"tp", shard(0)}}, kSite);
    const DTensor finer = redistribute(shards, {{"tp", shard(0)}, {"fsdp", shard(0)}}, kSite);
    const DTensor masked = redistribute(whole, {{"tp", partial()}}, kSite);
    const DTensor embedded = redistribute(shards, {{"tp", partial()}}, kSite);

    const bool first = mesh->coordinate("tp") == 0;
    const at::Tensor mask = (at::arange(9).view({9, 1}) < 5) == at::scalar_tensor(first);
    EXPECT_TRUE(at::equal(masked.local, first ? rows(9) : at::zeros({9, 1}, at::kDouble)));
    EXPECT_TRUE(at::equal(embedded.local, rows(9) * mask));
    EXPECT_EQ(finer.local.size(0),
              std::vector<int64_t>(
                  {3, 2, 2,
                   2})[static_cast<size_t>(2 * mesh->coordinate("tp") + mesh->coordinate("fsdp"))]);
    EXPECT_EQ(recorder->count(), 0);
  });
}

TEST(Redistribute, SumsByTheOperationThatTheTargetNeeds) {
  run_ranks(6, [](const CommPtr& world) {
    const auto recorder = std::make_shared<Recorder>();
    const MeshPtr mesh = make_mesh(record(world, recorder), MeshShape({{"fsdp", 3}, {"tp", 2}}));
    const double fsdp = static_cast<double>(mesh->coordinate("fsdp"));
    const DTensor addend{rows(10) * (fsdp + 1), {10, 1}, mesh, {{"fsdp", partial()}}};
    recorder->clear();
    const DTensor sum = redistribute(addend, {}, kSite);
    EXPECT_TRUE(at::equal(sum.local, rows(10) * 6));
    EXPECT_EQ(recorder->count(), 1);
    EXPECT_EQ(recorder->count("all_reduce", "fsdp"), 1);

    recorder->clear();
    const DTensor part = redistribute(addend, {{"fsdp", shard(0)}}, kSite);
    const int64_t first = mesh->coordinate("fsdp") == 0 ? 0 : 3 * mesh->coordinate("fsdp") + 1;
    EXPECT_TRUE(at::equal(part.local, (rows(10) * 6).slice(0, first, first + part.local.size(0))));
    EXPECT_EQ(recorder->count(), 1);
    EXPECT_EQ(recorder->count("reduce_scatter", "fsdp"), 1);
  });
}

// Key/value heads copied over pairs: the copies' gradients are added once, over the pair.
TEST(Redistribute, AddendsAreSummedOverTheirBlock) {
  run_ranks(4, [](const CommPtr& world) {
    const auto recorder = std::make_shared<Recorder>();
    const MeshPtr mesh = make_mesh(record(world, recorder), MeshShape({{"tp", 4}}));
    const Cut heads = Cut::units(6, 3, Spread::kCopies);
    const int64_t head = mesh->rank() / 2;
    const at::Tensor local = at::full({3}, static_cast<double>(mesh->rank() + 1), at::kDouble);
    recorder->clear();

    const DTensor sum = redistribute(DTensor{local, {6}, mesh, {{"tp", addends(0, heads)}}},
                                     {{"tp", shard(0, heads)}}, kSite);

    EXPECT_TRUE(at::equal(sum.local, at::full({3}, head == 0 ? 3.0 : 7.0, at::kDouble)));
    EXPECT_EQ(recorder->count("all_reduce", "tp/2"), 1);
  });
}

// From float32 tensors of 64 MiB, with dims that nothing divides.
struct LargeCase {
  const char* name;
  Placements source;
  Placements target;
};

class RedistributeMemory : public ::testing::TestWithParam<LargeCase> {};

TEST_P(RedistributeMemory, HoldsSourceTargetAndScratchAndMovesWhatIsMissing) {
  const std::vector<int64_t> shape{4099, 4093};
  const MeshShape mesh_shape({{"fsdp", 2}, {"tp", 2}});
  MemoryMeter::install();
  run_ranks(4, [&](const CommPtr& world) {
    const int rank = world->rank();
    MemoryMeter::set_rank(rank);
    const auto recorder = std::make_shared<Recorder>();
    const MeshPtr mesh = make_mesh(record(world, recorder), mesh_shape);
    const auto plan =
        plan_redistribute({shape, GetParam().source, GetParam().target, mesh_shape, rank, 4});
    prepare_redistribute(plan, *mesh);
    const at::Tensor local = at::ones(local_shape(plan.source), at::kFloat);
    recorder->clear();
    MemoryMeter::reset_peak();
    const int64_t before = MemoryMeter::current();

    const at::Tensor result = run_redistribute(plan, local, *mesh, kSite);

    EXPECT_LE(MemoryMeter::peak() - before, 4 * result.numel() + (16 << 20));
    if (recorder->count("reduce_scatter") + recorder->count("all_reduce") == 0) {
      EXPECT_EQ(recorder->bytes("all_to_all"), 4 * plan.elements_sent);
      EXPECT_EQ(plan.elements_received,
                numel(plan.target) - numel(intersect(plan.target, plan.source)));
    }
    const float value = GetParam().source[0].placement.is_partial() ? 2 : 1;
    EXPECT_TRUE(result.eq(value).all().item<bool>());
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, RedistributeMemory,
    ::testing::Values(LargeCase{"Gather", {{"tp", shard(0)}, {"fsdp", shard(0)}}, {}},
                      LargeCase{"OtherDim", {{"tp", shard(0)}}, {{"tp", shard(1)}}},
                      LargeCase{"OtherNest",
                                {{"tp", shard(0)}, {"fsdp", shard(0)}},
                                {{"fsdp", shard(0)}, {"tp", shard(1)}}},
                      LargeCase{"AllReduce", {{"fsdp", partial()}}, {}},
                      LargeCase{"ReduceScatter", {{"fsdp", partial()}}, {{"fsdp", shard(0)}}},
                      LargeCase{"ReduceElsewhere", {{"fsdp", partial()}}, {{"tp", shard(1)}}}),
    [](const auto& info) { return std::string(info.param.name); });

// One element of a sum of products with `weights`, computed in shards; the gradient of the whole is
// `weights`.
void expect_gradient(const MeshShape& mesh_shape, const RedistributeEdge& edge) {
  const std::vector<int64_t> shape{7, 5};
  const CounterRng rng(3, "weights");
  const at::Tensor weights = testing::whole_numbers(shape, rng);
  const auto ranks = static_cast<int>(mesh_shape.world_size());
  const auto given = testing::drawn_parts(shape, edge.source, mesh_shape, 5);
  const auto gradients = [&] {  // of the target, by layout
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < ranks; ++rank)
      parts.push_back(
          plan_redistribute({shape, {}, edge.grad_of_target, mesh_shape, rank}).zero_filled
              ? weights / 2
              : take(weights, whole_region(shape),
                     region_of(shape, edge.grad_of_target, mesh_shape, rank)));
    return parts;
  }();
  std::vector<at::Tensor> found(given.size());

  run_ranks(ranks, [&](const CommPtr& world) {
    const auto me = static_cast<size_t>(world->rank());
    const MeshPtr mesh = make_mesh(world, mesh_shape);
    const at::Tensor local = given[me].clone().requires_grad_();
    const at::Tensor result = redistribute(local * 1, shape, edge, mesh, kSite);
    result.backward(gradients[me]);
    found[me] = local.grad();
  });

  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(at::equal(found[static_cast<size_t>(rank)],
                          take(weights, whole_region(shape),
                               region_of(shape, edge.grad_of_source, mesh_shape, rank))))
        << to_string(edge.source) << " -> " << to_string(edge.target) << ", rank " << rank;
}

TEST(RedistributeGradient, IsThatOfTheUnshardedComputation) {
  const MeshShape mesh({{"fsdp", 2}, {"tp", 2}});
  const Placements nested{{"tp", shard(0)}, {"fsdp", shard(0)}};

  expect_gradient(mesh, plain_edge(nested, {}));
  expect_gradient(mesh, plain_edge({}, nested));
  expect_gradient(mesh, plain_edge(nested, {{"tp", shard(1)}}));
  expect_gradient(mesh, plain_edge({{"tp", partial()}}, {}));
  expect_gradient(mesh, plain_edge({{"tp", partial()}}, nested));
  expect_gradient(mesh, plain_edge({}, {{"tp", partial()}}));
  expect_gradient(mesh, plain_edge(nested, nested));
  // The input of a column-parallel layer, and a gathered parameter: gradients to be added.
  expect_gradient(mesh, {{}, {}, {{"tp", partial()}}, {}});
  expect_gradient(mesh, {nested, {{"tp", shard(0)}}, {{"tp", shard(0)}}, nested});
}

TEST(Redistribute, RefusesWhatIsNoLayout) {
  const MeshShape mesh({{"tp", 2}});

  EXPECT_THROW(plan_redistribute({{4}, {{"tp", shard(1)}}, {}, mesh, 0}), ContractError);
  EXPECT_THROW(plan_redistribute({{4}, {{"tp", shard(0)}, {"tp", partial()}}, {}, mesh, 0}),
               ContractError);
  run_ranks(2, [&](const CommPtr& world) {
    DeviceMesh both(world, mesh);
    const auto plan = plan_redistribute({{4}, {{"tp", shard(0)}}, {}, mesh, both.rank()});
    EXPECT_THROW(run_redistribute(plan, at::zeros({4}), both, kSite), ContractError);
  });
}

TEST(DTensor, SaysWhatItIs) {
  run_ranks(2, [](const CommPtr& world) {
    const MeshPtr mesh = make_mesh(world, MeshShape({{"tp", 2}}));
    const DTensor tensor = from_whole(rows(5), mesh, {{"tp", shard(0)}});

    EXPECT_EQ(to_string(tensor),
              fmt::format("[5, 1] Double on tp=2 as tp:S(0); rank {} holds [{}, 1]", mesh->rank(),
                          mesh->rank() == 0 ? 3 : 2));
    EXPECT_EQ(to_string(Placements{}), "R");
  });
}

}  // namespace
}  // namespace shardproof
