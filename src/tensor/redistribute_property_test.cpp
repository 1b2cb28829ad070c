// Random layouts to random layouts: values, the elements that move, and the way back.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "tensor/dtensor.h"
#include "tensor/redistribute.h"
#include "tensor/redistribute_test_support.h"

namespace shardproof {
namespace {

const Site kSite{"redistribute_property_test", "tensor", "setup"};

// A stream of draws.
class Draw {
 public:
  Draw(uint64_t seed, const std::string& name) : rng_(seed, name) {}
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(rng_.integer(next_++, static_cast<uint64_t>(bound)));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  }

 private:
  CounterRng rng_;
  uint64_t next_ = 0;
};

Section drawn_section(Draw& draw, int64_t width, bool mixed) {
  constexpr Spread kSpreads[] = {Spread::kNone, Spread::kCopies, Spread::kShare};
  Section section{width, draw.between(1, 4)};
  if (mixed) section.spread = kSpreads[draw.below(3)];
  if (section.spread == Spread::kShare) section.sub_unit = draw.between(1, 2);
  return section;
}

Cut drawn_cut(Draw& draw, int64_t width) {
  Cut cut;
  for (int64_t left = width; left > 0;) {
    const int64_t section = draw.below(2) == 0 ? left : draw.between(1, left);
    cut.sections.push_back(drawn_section(draw, section, true));
    left -= section;
  }
  return cut;
}

// Only the first shard of a dim has a cut: what later ones cut differs in width from rank to rank.
Placements drawn_placements(Draw& draw, const std::vector<int64_t>& shape, const MeshShape& mesh) {
  Placements placements;
  std::vector<bool> is_cut(shape.size());
  std::vector<MeshAxis> axes = mesh.axes();
  draw.shuffle(axes);
  for (const MeshAxis& axis : axes) {
    const int64_t kind = draw.below(shape.empty() ? 3 : 8);
    if (kind == 0) continue;
    if (kind == 1) placements.push_back({axis.name, replicate()});
    if (kind == 2) placements.push_back({axis.name, partial()});
    if (kind < 3) continue;
    const int64_t dim = draw.below(static_cast<int64_t>(shape.size()));
    const auto d = static_cast<size_t>(dim);
    const bool plain = is_cut[d] || draw.below(4) == 0;
    const Cut cut = plain ? Cut{} : drawn_cut(draw, shape[d]);
    is_cut[d] = true;
    placements.push_back({axis.name, kind == 3 ? addends(dim, cut) : shard(dim, cut)});
  }
  return placements;
}

struct Case {
  std::vector<int64_t> shape;
  Placements source;
  Placements target;
  std::vector<at::Tensor> given;  // a rank each
  std::vector<at::Tensor> result;
  std::vector<at::Tensor> back;
  std::vector<at::Tensor> whole;
  std::vector<RedistributePlan> plans;
  std::vector<int64_t> exchanged;  // elements handed to all-to-all

  std::string to_string(const MeshShape& mesh) const {
    return fmt::format("[{}] on {}: {} -> {}", fmt::join(shape, ", "), mesh.to_string(),
                       shardproof::to_string(source), shardproof::to_string(target));
  }
};

Case drawn_case(const MeshShape& mesh, uint64_t seed) {
  Draw draw(seed, mesh.to_string());
  Case drawn;
  for (int64_t dims = draw.below(8) == 0 ? 0 : draw.between(1, 3); dims > 0; --dims)
    drawn.shape.push_back(draw.below(12) == 0 ? 0 : draw.between(1, 9));
  drawn.source = drawn_placements(draw, drawn.shape, mesh);
  drawn.target = drawn_placements(draw, drawn.shape, mesh);
  drawn.given = testing::drawn_parts(drawn.shape, drawn.source, mesh, seed);
  const auto ranks = static_cast<size_t>(mesh.world_size());
  drawn.result.resize(ranks);
  drawn.back.resize(ranks);
  drawn.whole.resize(ranks);
  drawn.plans.resize(ranks);
  drawn.exchanged.resize(ranks);
  return drawn;
}

void run_case(Case& drawn, DeviceMesh& mesh, Recorder& recorder) {
  const auto me = static_cast<size_t>(mesh.rank());
  // A small scratch, so that some take several slabs.
  const RedistributeRequest request{
      drawn.shape, drawn.source, drawn.target, mesh.shape(), mesh.rank(), 8, 640};
  drawn.plans[me] = plan_redistribute(request);
  prepare_redistribute(drawn.plans[me], mesh);
  recorder.clear();
  drawn.result[me] = run_redistribute(drawn.plans[me], drawn.given[me], mesh, kSite);
  drawn.exchanged[me] = recorder.elements("all_to_all");
  RedistributeRequest back = request;
  std::swap(back.source, back.target);
  drawn.back[me] = run_redistribute(plan_redistribute(back), drawn.result[me], mesh, kSite);
  RedistributeRequest gather = request;
  gather.source = drawn.target;
  gather.target = {};
  drawn.whole[me] = run_redistribute(plan_redistribute(gather), drawn.result[me], mesh, kSite);
}

bool has_addends(const Placements& placements, const MeshShape& mesh) {
  return std::any_of(placements.begin(), placements.end(), [&](const AxisPlacement& placed) {
    return testing::holds_addends(placed, mesh);
  });
}

void check_case(const Case& drawn, const MeshShape& mesh) {
  SCOPED_TRACE(drawn.to_string(mesh));
  bool agree = true;
  const at::Tensor truth = testing::assemble(drawn.given, drawn.shape, drawn.source, mesh, agree);
  EXPECT_TRUE(
      at::equal(testing::assemble(drawn.result, drawn.shape, drawn.target, mesh, agree), truth));
  EXPECT_TRUE(
      at::equal(testing::assemble(drawn.back, drawn.shape, drawn.source, mesh, agree), truth));
  EXPECT_TRUE(agree);
  int64_t sent = 0;
  int64_t received = 0;
  for (size_t rank = 0; rank < drawn.given.size(); ++rank) {
    const RedistributePlan& plan = drawn.plans[rank];
    EXPECT_TRUE(at::equal(drawn.whole[rank], truth));
    EXPECT_EQ(plan.slabs.size(), drawn.plans[0].slabs.size());
    sent += plan.elements_sent;
    received += plan.elements_received;
    if (has_addends(drawn.source, mesh)) continue;
    EXPECT_EQ(drawn.exchanged[rank], plan.elements_sent);
    if (has_addends(drawn.target, mesh)) continue;
    const int64_t missing = numel(plan.target) - numel(intersect(plan.target, plan.source));
    EXPECT_EQ(plan.elements_received, missing) << "rank " << rank;
  }
  EXPECT_EQ(sent, received);
}

class RedistributeProperty : public ::testing::TestWithParam<MeshShape> {};

TEST_P(RedistributeProperty, KeepsTheTensorAndMovesWhatIsMissing) {
  constexpr uint64_t kCases = 40;
  const MeshShape shape = GetParam();
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < kCases; ++seed) cases.push_back(drawn_case(shape, seed));

  run_ranks(static_cast<int>(shape.world_size()), [&](CommPtr world) {
    const auto recorder = std::make_shared<Recorder>();
    DeviceMesh mesh(record(world, recorder), shape);
    for (Case& drawn : cases) run_case(drawn, mesh, *recorder);
  });

  for (const Case& drawn : cases) check_case(drawn, shape);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, RedistributeProperty,
    ::testing::Values(MeshShape({{"tp", 1}}), MeshShape({{"tp", 2}}), MeshShape({{"tp", 3}}),
                      MeshShape({{"tp", 4}}), MeshShape({{"tp", 6}}),
                      MeshShape({{"fsdp", 2}, {"tp", 2}}), MeshShape({{"tp", 2}, {"fsdp", 3}}),
                      MeshShape({{"fsdp", 3}, {"tp", 2}}), MeshShape({{"fsdp", 4}, {"tp", 2}}),
                      MeshShape({{"dp_replicate", 2}, {"fsdp", 1}, {"tp", 4}}),
                      MeshShape({{"dp_replicate", 2}, {"fsdp", 2}, {"tp", 2}})),
    [](const auto& info) {
      std::string name = info.param.to_string();
      for (char& c : name)
        if (c == '=' || c == ',') c = '_';
      return name;
    });

}  // namespace
}  // namespace shardproof
