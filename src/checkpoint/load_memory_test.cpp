// What a rank needs while it loads: its own bytes and a bounded scratch, whatever the tensors'
// sizes.
#include "base/memory_meter.h"
#include "checkpoint/read_piece.h"
#include "checkpoint/testing.h"
#include "io/mxfp4.h"

namespace shardproof {
namespace {

using testing::Bag;
using testing::NamedList;
using testing::Shape;

struct Layout {
  std::string name;
  MeshShape mesh;
  Placements placements;
};

// Expert weights [experts, in, out]: tp cuts `dim`, fsdp experts (or, nested, what tp left of
// `dim`).
std::vector<Layout> layouts(int64_t dim) {
  return {{"tp=2", MeshShape({{"tp", 2}}), {{"tp", shard(dim)}}},
          {"fsdp=4", MeshShape({{"fsdp", 4}}), {{"fsdp", shard(0)}}},
          {"fsdp=2,tp=2",
           MeshShape({{"fsdp", 2}, {"tp", 2}}),
           {{"tp", shard(dim)}, {"fsdp", shard(0)}}},
          {"fsdp=3 inside",
           MeshShape({{"fsdp", 3}, {"tp", 2}}),
           {{"tp", shard(dim)}, {"fsdp", shard(dim)}}}};
}

class LoadMemoryTest : public testing::FileTest {
 protected:
  // Loads the shards of the first and the last rank of the one parameter; `whole` is what it is.
  void expect_bounded(const std::string& name, const NamedList& tensors, const WeightMap& map,
                      const at::Tensor& whole) {
    MemoryMeter::install();
    const CheckpointFiles files = write(tensors);
    for (const int64_t dim : {1, 2}) {
      for (const Layout& layout : layouts(dim)) {
        for (const int64_t rank : {int64_t{0}, layout.mesh.world_size() - 1}) {
          SCOPED_TRACE(fmt::format("{} dim {} rank {}", layout.name, dim, rank));
          Bag module({{name, whole.sizes().vec()}});
          const ParamPtr parameter = module.all_parameters()[0];
          const Region region = region_of(parameter->shape(), layout.placements, layout.mesh, rank);
          testing::place(*parameter, region, whole.scalar_type());
          const int64_t before = MemoryMeter::current();
          MemoryMeter::reset_peak();

          load_parameters(module, files, map);

          EXPECT_LE(MemoryMeter::peak() - before, 2 * kLoadSlabBytes);
          EXPECT_TRUE(at::equal(parameter->kept(), testing::take(whole, region)));
        }
      }
    }
  }
};

// 25 MB in float32, 13 in bfloat16, 3.4 in MXFP4. The meter does not see the buffer for gaps in
// files.
constexpr int64_t kExperts = 6, kOut = 1000, kIn = 1056;

TEST_F(LoadMemoryTest, Mxfp4TransposedIntoBfloat16) {
  std::mt19937 random(5);
  const NamedList pair = testing::mxfp4_pair("w", {kExperts, kOut, kIn}, random);
  expect_bounded("w", pair,
                 {.rules = {{"w", {weight::transpose(weight::mxfp4("w"))}}}, .ignored = {}},
                 decode_mxfp4(pair[0].second, pair[1].second, at::kBFloat16).transpose(1, 2));
}

TEST_F(LoadMemoryTest, StackOfConcatenatedExpertsIntoFloat32) {
  NamedList tensors;
  std::vector<at::Tensor> experts;
  for (int64_t e = 0; e < kExperts; ++e) {
    for (const char* part : {"gate", "up"})
      tensors.emplace_back(fmt::format("w.{}.{}", e, part),
                           testing::values({kOut / 2, kIn}, e).to(at::kBFloat16));
    experts.push_back(at::cat({tensors[tensors.size() - 2].second, tensors.back().second}));
  }
  const WeightMap map = {
      .rules = {{"w",
                 {weight::concatenate(1, {weight::stack(weight::tensor("w.*.gate")),
                                          weight::stack(weight::tensor("w.*.up"))})}}},
      .ignored = {}};
  expect_bounded("w", tensors, map, at::stack(experts).to(at::kFloat));
}

TEST_F(LoadMemoryTest, TransposedBfloat16) {
  const at::Tensor stored = testing::values({kExperts, kOut, kIn}, 1).to(at::kBFloat16);
  expect_bounded("w", {{"w", stored}},
                 {.rules = {{"w", {weight::transpose(weight::tensor("w"))}}}, .ignored = {}},
                 stored.transpose(1, 2));
}

}  // namespace
}  // namespace shardproof
