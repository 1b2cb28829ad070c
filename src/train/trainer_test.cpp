#include "train/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/threads/run_ranks.h"
#include "parallel/parallelize.h"

namespace shardproof {
namespace {

// logits = table[input_ids]: small enough to know its gradient.
class TableModel final : public Module {
 public:
  TableModel() : Module("TableModel", {{{"input_ids"}}, {{"logits"}}}) {
    table = add_parameter(
        "table", std::make_shared<Parameter>(std::vector<int64_t>{4, 4}, std::vector<Cut>(2)));
    finish();
  }
  NamedTensors forward(const NamedTensors& inputs) override {
    return {{"logits", table->view().index({inputs.at("input_ids")})}};
  }
  ParamPtr table;
};

// The table whole on every rank, all zeros; its gradient is summed over the ranks.
std::shared_ptr<TableModel> replicated_table(const CommPtr& world) {
  DistributedConfig config;
  config.dp_replicate_size = world->size();
  auto model = std::make_shared<TableModel>();
  parallelize(*model, std::make_shared<DeviceMesh>(world, config.mesh()), config, {},
              {.dtype = at::kDouble});
  model->table->kept().zero_();
  return model;
}

Batch tokens(std::vector<int64_t> ids, std::vector<int64_t> labels) {
  return {at::tensor(ids).unsqueeze(0), at::tensor(labels).unsqueeze(0), {0}};
}

// Uniform logits: each valid token costs log 4, d loss / d logits = softmax - onehot over the
// count.
TEST(TrainStep, DividesByTheValidTokensOfAllDataRanks) {
  run_ranks(2, [](const CommPtr& world) {
    const auto model = replicated_table(world);
    AdamW optimizer(model->all_parameters(), {.lr = 0.5, .weight_decay = 0});
    const Batch batch = world->rank() == 0
                            ? tokens({0, 1, 2, 3}, {-100, 1, 2, 3})
                            : tokens({3, 3, 3, 0}, {-100, -100, -100, -100});  // none that counts
    at::Tensor gradient;
    StepOptions options;
    options.after_backward = [&] { gradient = model->table->grad.clone(); };

    const StepResult result =
        train_step(*model, optimizer, batch, whole_logits_loss(), *world, *world, options);

    EXPECT_EQ(result.valid_tokens, 3);
    EXPECT_NEAR(result.loss, std::log(4.0), 1e-15);
    EXPECT_NEAR(gradient[0][1].item<double>(), -0.25, 1e-15);  // (1/4 - 1) / 3
    EXPECT_NEAR(gradient[0][0].item<double>(), 0.25 / 3, 1e-15);
    EXPECT_EQ(gradient[3].abs().sum().item<double>(), 0.0);  // only before labels that do not count
    EXPECT_NEAR(model->table->kept()[0][1].item<double>(), 0.5, 1e-6);
    EXPECT_NEAR(result.grad_norm, gradient.norm().item<double>(), 1e-15);
  });
}

TEST(TrainStep, RefusesABatchInWhichNothingCounts) {
  run_ranks(1, [](const CommPtr& world) {
    const auto model = replicated_table(world);
    AdamW optimizer(model->all_parameters(), {});
    const Batch batch = tokens({0, 1}, {1, -100});  // the first column predicts nothing
    EXPECT_THROW(train_step(*model, optimizer, batch, whole_logits_loss(), *world, *world),
                 InputError);
  });
}

}  // namespace
}  // namespace shardproof
