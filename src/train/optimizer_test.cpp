#include "train/optimizer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardproof {
namespace {

ParamPtr make_parameter(const std::string& name, const at::Tensor& values) {
  auto parameter =
      std::make_shared<Parameter>(values.sizes().vec(), std::vector<Cut>(values.dim()));
  parameter->add_name(name);
  parameter->place_whole(values.scalar_type());
  const c10::NoGradGuard no_grad;
  parameter->kept().detach().copy_(values);
  return parameter;
}

at::Tensor doubles(std::vector<double> values) { return at::tensor(values, at::kDouble); }

void expect_values(const at::Tensor& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.scalar_type(), at::kDouble);
  ASSERT_EQ(actual.numel(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual.flatten()[i].item<double>(), expected[i], 1e-15) << "element " << i;
}

// The expected values are those of torch.optim.AdamW (2.13, foreach=False) in float64.
TEST(AdamW, EqualsTorchOverThreeSteps) {
  const ParamPtr p = make_parameter("p", doubles({0.5, -1.25, 2.0}));
  const ParamPtr q = make_parameter("q", doubles({1.0, -0.5}).reshape({1, 2}));
  AdamW adamw({p, q}, {.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.3});
  const std::vector<std::vector<double>> gradients = {
      {0.1, -0.2, 0.3}, {1.0, 0.0, -0.5}, {-0.25, 2.0, 1e-3}};

  for (size_t step = 0; step < gradients.size(); ++step) {
    p->grad = doubles(gradients[step]);
    q->grad = step == 1 ? at::Tensor() : doubles({0.5, -4.0}).reshape({1, 2});
    adamw.step();
  }

  expect_values(p->kept(), {0.239308974622094, -1.049485028570349, 1.790414499731243});
  expect_values(adamw.moments("p").exp_avg,
                {0.12279999999999996, 0.3743999999999999, -0.041399999999999985});
  expect_values(adamw.moments("p").exp_avg_sq,
                {0.051076250000000045, 0.20180500000000018, 0.015936300000000014});
  EXPECT_EQ(adamw.moments("p").step, 3);
  expect_values(q->kept(), {0.7439003939992119, -0.27345004924998767});
  expect_values(adamw.moments("q").exp_avg, {0.17999999999999997, -1.4399999999999997});
  expect_values(adamw.moments("q").exp_avg_sq, {0.02437500000000002, 1.5600000000000014});
  EXPECT_EQ(adamw.moments("q").step, 2);  // a step without a gradient is no step
}

TEST(AdamW, LeavesAParameterWithoutGradientAlone) {
  const ParamPtr p = make_parameter("p", doubles({0.5, -1.25}));
  AdamW adamw({p}, {.lr = 1, .weight_decay = 0.5});

  adamw.step();

  expect_values(p->kept(), {0.5, -1.25});
  EXPECT_FALSE(adamw.moments("p").exp_avg.defined());
}

TEST(AdamW, WorksOnAnEmptyShard) {
  const ParamPtr p = make_parameter("p", at::zeros({0, 3}, at::kDouble));
  AdamW adamw({p}, {});
  p->grad = at::zeros({0, 3}, at::kDouble);

  adamw.step();

  EXPECT_EQ(adamw.moments("p").exp_avg.sizes(), (at::IntArrayRef{0, 3}));
}

TEST(AdamW, RefusesWrongOptionsAndGradients) {
  const ParamPtr p = make_parameter("p", doubles({0.5, -1.25}));
  EXPECT_THROW(AdamW({p}, {.lr = -1}), InputError);
  EXPECT_THROW(AdamW({p}, {.beta2 = 1}), InputError);
  EXPECT_THROW(AdamW({p, p}, {}), ContractError);
  AdamW adamw({p}, {});
  EXPECT_THROW(adamw.moments("q"), ContractError);
  p->grad = doubles({1});
  EXPECT_THROW(adamw.step(), ContractError);
}

}  // namespace
}  // namespace shardproof
