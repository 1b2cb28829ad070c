#include "harness/twin.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "nn/linear.h"

namespace shardproof {
namespace {

constexpr uint64_t kFewestBlocks = 2, kMostBlocks = 4;

// Fisher and Yates.
std::vector<int64_t> drawn_order(int64_t size, const CounterRng& draw, uint64_t index) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[draw.integer(index++, i)]);
  return order;
}

// The rows of the unsharded run's batch in the order in which the twin has them.
at::Tensor row_order(int64_t rows, uint64_t seed, int64_t twin) {
  return at::tensor(drawn_order(rows, CounterRng(seed, fmt::format("twin/{}/rows", twin)), 0),
                    at::kLong);
}

// Replaces the output of a Linear by the same computed in blocks.
class BlockingHook final : public ModuleHook {
 public:
  explicit BlockingHook(const CounterRng& draw) : draw_(draw) {}

  void before(Module&, NamedTensors& inputs) override { input_ = inputs.at("input"); }

  void after(Module& module, NamedTensors& outputs) override {
    const ParamPtr weight = module.parameter("weight");
    const ParamPtr bias = module.parameter("bias");
    const at::Tensor input = std::exchange(input_, {});
    const int64_t rows = input.numel() / input.size(-1);
    const LinearBlocks blocks{.in = blocks_of(input.size(-1), 0),
                              .out = blocks_of(weight->shape().at(0), 1),
                              .rows = blocks_of(rows, 2)};
    outputs.set("output",
                blocked_linear(input, weight->view(), bias ? bias->view() : at::Tensor(), blocks));
  }

 private:
  // `sum`: which of the module's sums; each draws from numbers of its own.
  Blocks blocks_of(int64_t width, uint64_t sum) const {
    const uint64_t index = sum * (kMostBlocks + 1);
    const uint64_t count = kFewestBlocks + draw_.integer(index, kMostBlocks - kFewestBlocks + 1);
    return drawn_blocks(width, static_cast<int64_t>(count), draw_, index + 1);
  }

  CounterRng draw_;
  at::Tensor input_;
};

}  // namespace

Blocks drawn_blocks(int64_t width, int64_t count, const CounterRng& draw, uint64_t index) {
  SP_EXPECT(width > 0 && count > 0, "{} elements in {} blocks", width, count);
  count = std::min(count, width);
  Blocks blocks;
  for (const int64_t i : drawn_order(count, draw, index))
    blocks.push_back({i * width / count, (i + 1) * width / count});
  return blocks;
}

RunSeams twin_seams(uint64_t seed, int64_t twin) {
  RunSeams seams;
  seams.model = [seed, twin](PlacedModel& placed) {
    SP_EXPECT(placed.mesh->world()->size() == 1, "a twin runs on one rank, not on {}",
              placed.mesh->world()->size());
    for (Module* module : placed.causal_lm.model->modules())
      if (dynamic_cast<Linear*>(module) != nullptr)
        module->add_hook(std::make_shared<BlockingHook>(
            CounterRng(seed, fmt::format("twin/{}/{}", twin, module->path()))));
  };
  seams.batch = [seed, twin](const Batch& batch) {
    const at::Tensor order = row_order(batch.input_ids.size(0), seed, twin);
    Batch permuted{batch.input_ids.index_select(0, order), batch.labels.index_select(0, order), {}};
    for (int64_t i = 0; i < order.numel(); ++i)
      permuted.sample_ids.push_back(batch.sample_ids.at(order.const_data_ptr<int64_t>()[i]));
    return permuted;
  };
  return seams;
}

Value in_order(Value value, const DataSpec& data, int64_t twin) {
  const at::Tensor& local = value.local;
  // A table made for all samples alike (rotary) has equal rows, or another first dim.
  if (value.key.kind != Kind::kOutput || local.dim() == 0 || local.size(0) != data.samples)
    return value;
  const at::Tensor order = row_order(data.samples, data.seed, twin);
  value.local = local.index_select(0, order.argsort());
  return value;
}

}  // namespace shardproof
