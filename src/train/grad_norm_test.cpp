#include "train/grad_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "comm/threads/run_ranks.h"

namespace shardproof {
namespace {

ParamPtr with_gradient(const std::string& name, const std::vector<double>& gradient,
                       bool owned = true) {
  const auto size = static_cast<int64_t>(gradient.size());
  auto parameter = std::make_shared<Parameter>(std::vector<int64_t>{size}, std::vector<Cut>(1));
  parameter->add_name(name);
  parameter->place_whole(at::kDouble);
  parameter->grad = at::tensor(gradient, at::kDouble);
  if (!owned) parameter->owned.front() = {};
  return parameter;
}

TEST(GradNorm, ClipsAsTorchDoes) {
  run_ranks(1, [](const CommPtr& world) {
    const std::vector<ParamPtr> params = {with_gradient("a", {3, 4}), with_gradient("b", {12})};

    EXPECT_DOUBLE_EQ(clip_grad_norm_(params, *world, 2.5), 13.0);

    // torch.nn.utils.clip_grad_norm_ on the same numbers
    EXPECT_DOUBLE_EQ(params[0]->grad[0].item<double>(), 0.5769230325443822);
    EXPECT_DOUBLE_EQ(params[0]->grad[1].item<double>(), 0.7692307100591762);
    EXPECT_DOUBLE_EQ(params[1]->grad[0].item<double>(), 2.3076921301775286);
    EXPECT_THROW(clip_grad_norm_(params, *world, 0), ContractError);
  });
}

TEST(GradNorm, LeavesASmallGradientAlone) {
  run_ranks(1, [](const CommPtr& world) {
    const std::vector<ParamPtr> params = {with_gradient("a", {3, 4})};
    EXPECT_DOUBLE_EQ(clip_grad_norm_(params, *world, 6), 5.0);
    EXPECT_EQ(params[0]->grad[1].item<double>(), 4.0);
  });
}

TEST(GradNorm, ANormThatIsNoNumberMakesEveryGradientNone) {
  run_ranks(1, [](const CommPtr& world) {
    const std::vector<ParamPtr> params = {with_gradient("a", {3, NAN}), with_gradient("b", {12})};
    EXPECT_TRUE(std::isnan(clip_grad_norm_(params, *world, 6)));
    EXPECT_TRUE(std::isnan(params[1]->grad[0].item<double>()));
  });
}

// Shards of "a" on three ranks, one of them empty; "b" whole on all and owned by rank 0; "c" has
// none.
TEST(GradNorm, CountsEachElementOnceWhateverItsLayout) {
  run_ranks(3, [](const CommPtr& world) {
    const std::vector<std::vector<double>> shards = {{1, 2}, {4}, {}};
    ParamPtr without = with_gradient("c", {5});
    without->grad.reset();
    const std::vector<ParamPtr> params = {with_gradient("a", shards[world->rank()]),
                                          with_gradient("b", {2}, world->rank() == 0), without};

    EXPECT_DOUBLE_EQ(clip_grad_norm_(params, *world, 1), 5.0);  // 1 + 4 + 16 + 4 = 25

    EXPECT_DOUBLE_EQ(params[1]->grad[0].item<double>(), 2.0 / (5.0 + 1e-6));
  });
}

}  // namespace
}  // namespace shardproof
