// A check of one's own, without scenarios: run under mpirun, the ranks are the processes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/self.h"
#include "harness/gtest_main/test_world.h"
#include "parallel/parallelize.h"
#include "recency/family.h"
#include "train/initialize.h"

namespace {

using namespace shardproof;

constexpr const char* kConfig =
    R"({"vocab_size": 23, "hidden_size": 10, "intermediate_size": 13, "num_hidden_layers": 2,
        "initializer_range": 0.2})";

// Logits, and then the gradient of their weighted sum, which this leaves in the parameters.
at::Tensor run(Module& model) {
  const at::Tensor ids = at::tensor({3, 1, 22, 7, 7, 15, 0, 9}, at::kLong).reshape({2, 4});
  const at::Tensor logits = Module::only(model.call({ids}));
  (logits * at::arange(logits.numel(), at::kDouble).sin().reshape(logits.sizes())).sum().backward();
  return logits.detach();
}

double error(const at::Tensor& got, const at::Tensor& truth) {
  return (got - truth).norm().item<double>() / truth.norm().item<double>();
}

// The part of `whole` that a rank keeps: the intervals of its region, dim after dim.
at::Tensor part_of(at::Tensor whole, const Region& region) {
  for (size_t dim = 0; dim < region.size(); ++dim) {
    std::vector<at::Tensor> parts;
    for (const Interval& interval : region[dim])
      parts.push_back(whole.narrow(static_cast<int64_t>(dim), interval.begin, interval.size()));
    whole = at::cat(parts, static_cast<int64_t>(dim));
  }
  return whole;
}

// The toy on the ranks of `world`, all of them one tp axis, with the values of a seed.
CausalLM place(const CommPtr& world) {
  const ModelFamily family = recency::family();
  const CausalLM causal_lm = family.build(kConfig, "config");
  DistributedConfig config;
  config.tp_size = world->size();
  parallelize(*causal_lm.model, std::make_shared<DeviceMesh>(world, config.mesh()), config,
              family.plans, {.dtype = at::kDouble});
  initialize_parameters(*causal_lm.model, /*seed=*/5,
                        {.standard_deviation = causal_lm.initializer_range, .spread = 0.1});
  return causal_lm;
}

TEST(Recency, TensorParallelEqualsUnsharded) {
  const CommPtr world = test_world();
  ASSERT_GT(world->size(), 1) << "start it under mpirun";
  const CausalLM whole = place(make_self_communicator());
  const CausalLM sharded = place(world);

  EXPECT_LT(error(run(*sharded.model), run(*whole.model)), 1e-12);

  const auto truth = whole.model->all_parameters();
  const auto mine = sharded.model->all_parameters();
  ASSERT_EQ(mine.size(), truth.size());
  for (size_t i = 0; i < mine.size(); ++i)
    EXPECT_LT(error(mine[i]->grad, part_of(truth[i]->grad, mine[i]->kept_region())), 1e-12)
        << mine[i]->name();
}

}  // namespace
