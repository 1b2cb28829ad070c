#include "parallel/parallelize.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "nn/loss.h"
#include "parallel/toy_model_test.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

constexpr int64_t kSamples = 5, kLength = 4;

// Values that depend on the name and position alone.
at::Tensor values_of(const Parameter& parameter) {
  double phase = 0;
  for (const char c : parameter.name()) phase = phase * 1.7 + c;
  int64_t count = 1;
  for (const int64_t size : parameter.shape()) count *= size;
  return at::sin(at::arange(count, at::kDouble) * 1.3 + phase).view(parameter.shape()) * 0.7;
}

void fill(Module& model) {
  for (const ParamPtr& p : model.all_parameters()) {
    p->kept().copy_(take(values_of(*p), whole_region(p->shape()), p->kept_region()));
  }
}

at::Tensor ids() {
  return at::arange(kSamples * kLength)
      .mul(7)
      .remainder(ToyModel::kVocab)
      .view({kSamples, kLength});
}

// Every sample has its own number of labels.
at::Tensor labels() {
  at::Tensor result = ids().add(3).remainder(ToyModel::kVocab);
  for (int64_t i = 0; i < kSamples; ++i) result[i].narrow(0, 0, i % kLength).fill_(-100);
  return result;
}

struct Truth {
  at::Tensor logits;
  std::map<std::string, at::Tensor> grads;
};

void run(Module& model, int64_t first, int64_t count, at::Tensor* logits) {
  at::Tensor out = Module::only(model.call({ids().narrow(0, first, count)}));
  cross_entropy_sum(out, labels().narrow(0, first, count)).backward();
  *logits = out.detach();
}

Truth unsharded(bool tied) {
  ToyModel model(tied);
  for (const ParamPtr& p : model.all_parameters()) p->place_whole(at::kDouble);
  fill(model);
  Truth truth;
  run(model, 0, kSamples, &truth.logits);
  for (const ParamPtr& p : model.all_parameters()) truth.grads[p->name()] = p->view().grad();
  return truth;
}

struct Case {
  std::string layout;
  bool tied;
};

class ToyParity : public testing::TestWithParam<Case> {};

// Forward and every gradient, twice over (views are gathered anew), against the unsharded model.
TEST_P(ToyParity, EqualsTheUnshardedModel) {
  const auto [layout, tied] = GetParam();
  const Truth truth = unsharded(tied);
  const DistributedConfig config = config_from_layout(layout);
  run_ranks(static_cast<int>(config.mesh().world_size()), [&, tied = tied](CommPtr world) {
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    ToyModel model(tied);
    parallelize(model, mesh, config, ToyModel::plans(), {.dtype = at::kDouble});
    fill(model);
    const std::vector<std::string> data{"dp_replicate", "fsdp"};
    const Interval mine = cut_intervals({}, kSamples, mesh->shape().size(data),
                                        mesh->shape().coordinate(world->rank(), data))
                              .at(0);
    for (int round = 0; round < 2; ++round) {
      at::Tensor logits;
      run(model, mine.begin, mine.size(), &logits);
      EXPECT_LT((logits - truth.logits.narrow(0, mine.begin, mine.size())).norm().item<double>(),
                1e-12);
      for (const ParamPtr& p : model.all_parameters()) {
        const at::Tensor& whole = truth.grads.at(p->name());
        const at::Tensor want = take(whole, whole_region(p->shape()), p->kept_region());
        ASSERT_TRUE(p->grad.defined()) << p->name();
        EXPECT_LT((p->grad - want).norm().item<double>(), 1e-12 * whole.norm().item<double>())
            << layout << " rank " << world->rank() << " " << p->name();
        EXPECT_FALSE(p->view().grad().defined())
            << "a gradient stayed in the view of " << p->name();
        p->grad.reset();
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ToyParity,
    testing::Values(Case{"single", false}, Case{"single", true}, Case{"dp_replicate=2", false},
                    Case{"fsdp=2", true}, Case{"fsdp=3", false}, Case{"fsdp=4", true},
                    Case{"tp=2", false}, Case{"tp=3", true}, Case{"tp=4", false},
                    Case{"tp=8", true}, Case{"fsdp=2,tp=2", false}, Case{"fsdp=2,tp=2", true},
                    Case{"dp_replicate=2,fsdp=2", true}, Case{"dp_replicate=2,tp=3", false},
                    Case{"dp_replicate=2,fsdp=2,tp=2", true}),
    [](const auto& info) {
      std::string name = info.param.layout + (info.param.tied ? "_tied" : "");
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

TEST(Parallelize, GathersAndReducesEachUnitOnce) {
  const auto recorder = std::make_shared<Recorder>();
  run_ranks(2, [&](CommPtr world) {
    const DistributedConfig config = config_from_layout("fsdp=2");
    const auto mesh = std::make_shared<DeviceMesh>(
        world->rank() == 0 ? record(world, recorder) : world, config.mesh());
    ToyModel model(false);
    parallelize(model, mesh, config, ToyModel::plans(), {.dtype = at::kDouble});
    fill(model);
    if (world->rank() == 0) recorder->clear();
    at::Tensor logits;
    run(model, world->rank(), 2, &logits);
  });
  // embed, layer0, layer1 gather before forward and again before backward, head (kept) once.
  EXPECT_EQ(recorder->count("all_gather", "fsdp"), 3 * 2 + 1);
  EXPECT_EQ(recorder->count("reduce_scatter", "fsdp"), 4);
  EXPECT_EQ(recorder->records().size(), 11u);
}

TEST(Parallelize, SiblingsShareOneReductionOfTheirInputsGradient) {
  const auto recorder = std::make_shared<Recorder>();
  run_ranks(2, [&](CommPtr world) {
    const DistributedConfig config = config_from_layout("tp=2");
    const auto mesh = std::make_shared<DeviceMesh>(
        world->rank() == 0 ? record(world, recorder) : world, config.mesh());
    ToyModel model(false);
    parallelize(model, mesh, config, ToyModel::plans(), {.dtype = at::kDouble});
    fill(model);
    if (world->rank() == 0) recorder->clear();
    at::Tensor logits;
    run(model, 0, kSamples, &logits);
  });
  int64_t forward = 0, backward = 0;
  for (const auto& record : recorder->records()) {
    if (record.operation != "all_reduce") continue;
    (record.phase == "forward" ? forward : backward) += 1;
  }
  EXPECT_EQ(forward, 1 + 2);   // the embedding, down_proj of two layers
  EXPECT_EQ(backward, 2 + 1);  // one for gate and up of each layer, one for the head
  EXPECT_EQ(recorder->count("all_gather", "tp"), 1);  // the logits
}

// A backward that ends in the middle leaves nothing that the next one adds.
TEST(Parallelize, ABackwardThatThrewIsForgotten) {
  const Truth truth = unsharded(false);
  run_ranks(2, [&](CommPtr world) {
    const DistributedConfig config = config_from_layout("tp=2");
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    ToyModel model(false);
    parallelize(model, mesh, config, ToyModel::plans(), {.dtype = at::kDouble});
    fill(model);
    {
      at::Tensor logits = Module::only(model.call({ids()}));
      // The embedding's gradient arrives last: by then layers have been reduced and others have
      // begun.
      const ParamPtr up = model.all_parameters().at(3);
      const unsigned hook = up->view().register_hook(
          [](const at::Tensor&) -> void { throw std::runtime_error("planted"); });
      EXPECT_THROW(cross_entropy_sum(logits, labels()).backward(), std::runtime_error);
      up->view().remove_hook(hook);
      for (const ParamPtr& p : model.all_parameters()) p->grad.reset();
    }
    at::Tensor logits;
    run(model, 0, kSamples, &logits);
    for (const ParamPtr& p : model.all_parameters()) {
      const at::Tensor want =
          take(truth.grads.at(p->name()), whole_region(p->shape()), p->kept_region());
      ASSERT_TRUE(p->grad.defined()) << p->name();
      EXPECT_LT((p->grad - want).norm().item<double>(), 1e-12) << p->name();
    }
  });
}

TEST(Parallelize, TheConfigMustBeThatOfTheMesh) {
  run_ranks(2, [&](CommPtr world) {
    const auto mesh = std::make_shared<DeviceMesh>(world, config_from_layout("tp=2").mesh());
    ToyModel model(false);
    EXPECT_THROW(parallelize(model, mesh, config_from_layout("fsdp=2"), ToyModel::plans()),
                 ContractError);
  });
}

TEST(Parallelize, WithoutABackwardToFollowEveryUnitIsFreed) {
  run_ranks(2, [&](CommPtr world) {
    const DistributedConfig config = config_from_layout("fsdp=2");
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    ToyModel model(true);
    parallelize(model, mesh, config, ToyModel::plans(), {.dtype = at::kDouble});
    fill(model);
    at::NoGradGuard no_grad;
    model.call({ids()});
    for (const ParamPtr& p : model.all_parameters())
      EXPECT_EQ(p->view().storage().nbytes(), 0u) << p->name();
  });
}

}  // namespace
}  // namespace shardproof
