// What a Llama sends and holds under each layout, counted exactly by recorder and memory meter.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/memory_meter.h"
#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "models/llama/family.h"
#include "nn/loss.h"
#include "parallel/parallelize.h"

namespace shardproof {
namespace {

constexpr int64_t kLayers = 4;

std::string config_json(int64_t hidden, int64_t width, int64_t heads, int64_t kv_heads, bool tied) {
  return fmt::format(
      R"({{"model_type": "llama", "vocab_size": 11, "hidden_size": {}, "intermediate_size": {},
           "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": 4,
           "tie_word_embeddings": {}, "rms_norm_eps": 1e-6}})",
      hidden, width, kLayers, heads, kv_heads, tied);
}

void fill(Module& model) {
  for (const ParamPtr& p : model.all_parameters()) {
    p->kept().copy_(at::sin(at::arange(p->kept().numel(), at::kDouble)).view(p->kept().sizes()) *
                    0.1);
  }
}

// One forward and backward on every rank of the layout; what rank 0 sent.
std::vector<Record> traffic(const std::string& layout, const std::string& json) {
  const auto recorder = std::make_shared<Recorder>();
  const DistributedConfig config = config_from_layout(layout);
  run_ranks(static_cast<int>(config.mesh().world_size()), [&](CommPtr world) {
    const CommPtr seen = world->rank() == 0 ? record(world, recorder) : world;
    const auto mesh = std::make_shared<DeviceMesh>(seen, config.mesh());
    const ModelFamily family = llama_family();
    const CausalLM lm = family.build(json, "test");
    parallelize(*lm.model, mesh, config, family.plans, {.dtype = at::kDouble});
    fill(*lm.model);
    if (world->rank() == 0) recorder->clear();
    const at::Tensor ids = at::arange(6).view({2, 3});
    cross_entropy_sum(Module::only(lm.model->call({ids})), ids).backward();
  });
  return recorder->records();
}

int64_t count(const std::vector<Record>& records, const std::string& operation,
              const std::string& phase, const std::string& module = "") {
  int64_t total = 0;
  for (const Record& record : records) {
    total += record.operation == operation && record.phase == phase &&
             (module.empty() || record.module.starts_with(module));
  }
  return total;
}

TEST(LlamaTraffic, TensorParallelSendsTwoAllReducesForwardAndTwoBackwardALayer) {
  for (const char* layout : {"tp=2", "tp=3"}) {
    const auto records = traffic(layout, config_json(12, 10, 3, 3, false));
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const std::string path = fmt::format("model.layers.{}.", layer);
      EXPECT_EQ(count(records, "all_reduce", "forward", path), 2) << layout;
      EXPECT_EQ(count(records, "all_reduce", "backward", path), 2) << layout;
    }
    EXPECT_EQ(count(records, "all_reduce", "forward"), 2 * kLayers + 1);   // and the embedding
    EXPECT_EQ(count(records, "all_reduce", "backward"), 2 * kLayers + 1);  // and the head
    EXPECT_EQ(count(records, "all_gather", "forward"), 1);                 // the logits
    EXPECT_EQ(records.size(), static_cast<size_t>(4 * kLayers + 3));
  }
}

TEST(LlamaTraffic, CopiesOfKeyValueHeadsAreSummedOnceALayer) {
  // 4 query heads on 1 kv head, tp=4: all ranks hold copies of k and v.
  const auto records = traffic("tp=4", config_json(16, 10, 4, 1, false));
  int64_t sums = 0;
  for (const Record& record : records) {
    if (record.value != "copies") continue;
    ++sums;
    EXPECT_EQ(record.elements, 2 * 4 * 16);  // k and v of one head of 4, hidden 16, in one message
  }
  EXPECT_EQ(sums, kLayers);
}

TEST(LlamaTraffic, FsdpGathersTwiceAndReducesOnceAUnit) {
  const auto untied = traffic("fsdp=2", config_json(12, 10, 3, 3, false));
  // Freed after forward: embedding and layers; kept: norm and head.
  EXPECT_EQ(count(untied, "all_gather", "forward"), 1 + kLayers + 2);
  EXPECT_EQ(count(untied, "all_gather", "backward"), 1 + kLayers);
  EXPECT_EQ(count(untied, "reduce_scatter", "backward"), 1 + kLayers + 2);
  EXPECT_EQ(untied.size(), static_cast<size_t>(3 * (1 + kLayers) + 2 * 2));
  // Tied: embedding and head are one parameter of the root unit, which stays gathered.
  const auto tied = traffic("fsdp=2", config_json(12, 10, 3, 3, true));
  EXPECT_EQ(count(tied, "all_gather", "forward"), kLayers + 2);
  EXPECT_EQ(count(tied, "all_gather", "backward"), kLayers);
  EXPECT_EQ(count(tied, "reduce_scatter", "backward"), kLayers + 2);
}

TEST(LlamaTraffic, DdpReducesOnceAUnit) {
  const auto records = traffic("dp_replicate=2", config_json(12, 10, 3, 3, false));
  EXPECT_EQ(count(records, "all_reduce", "backward"), 1 + kLayers + 2);
  EXPECT_EQ(records.size(), static_cast<size_t>(1 + kLayers + 2));
}

// Counts the views of free_full_weight units that have memory, at every module's beginning and end.
class AliveHook final : public ModuleHook {
 public:
  AliveHook(std::vector<std::vector<ParamPtr>> units, size_t* most)
      : units_(std::move(units)), most_(most) {}
  void before(Module&, NamedTensors&) override { look(); }
  void after(Module&, NamedTensors& outputs) override {
    look();
    for (auto& [name, tensor] : outputs) {
      if (tensor.requires_grad()) tensor.register_hook([this](const at::Tensor&) { look(); });
    }
  }

 private:
  void look() {
    size_t alive = 0;
    for (const auto& unit : units_) alive += unit.front()->view().storage().nbytes() > 0;
    *most_ = std::max(*most_, alive);
  }
  std::vector<std::vector<ParamPtr>> units_;
  size_t* most_;
};

TEST(LlamaMemory, AtMostTwoFreedUnitsAreAliveBesideTheKeptOnes) {
  MemoryMeter::install();
  run_ranks(2, [&](CommPtr world) {
    MemoryMeter::set_rank(world->rank());
    const DistributedConfig config = config_from_layout("fsdp=2");
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    const ModelFamily family = llama_family();
    const CausalLM lm = family.build(config_json(256, 1024, 64, 64, false), "test");
    const auto plan = parallelize(*lm.model, mesh, config, family.plans, {.dtype = at::kDouble});
    fill(*lm.model);

    std::map<std::string, ParamPtr> by_name;
    int64_t shards = 0;
    for (const ParamPtr& p : lm.model->all_parameters()) {
      by_name[p->name()] = p;
      shards += p->kept().numel() * 8;
    }
    std::vector<std::vector<ParamPtr>> freed;
    int64_t largest = 0, kept = 0;
    for (const ResolvedUnit& unit : plan->units) {
      std::vector<ParamPtr> members;
      int64_t bytes = 0;
      for (const std::string& name : unit.parameters) {
        members.push_back(by_name.at(name));
        bytes += members.back()->view().numel() * 8;
      }
      if (unit.free_after_forward) {
        freed.push_back(members);
        largest = std::max(largest, bytes);
      } else {
        kept += bytes;
      }
    }
    size_t most_alive = 0;
    for (Module* module : lm.model->modules())
      module->add_hook(std::make_shared<AliveHook>(freed, &most_alive));

    const int64_t before = MemoryMeter::current();
    EXPECT_GE(before, shards);
    EXPECT_LT(before, shards + largest / 4) << "views hold memory before the first forward";
    MemoryMeter::reset_peak();
    const at::Tensor ids = at::arange(2).view({1, 2});
    cross_entropy_sum(Module::only(lm.model->call({ids})), ids).backward();
    EXPECT_GE(most_alive, 1u);
    EXPECT_LE(most_alive, 2u);
    // Kept units, two units (views and what arrives of them, or gradients and what leaves),
    // gradients laid out like the shards, the scratch of a reduction; activations of two tokens are
    // small beside a unit.
    const int64_t scratch = 4 << 20;
    EXPECT_LT(MemoryMeter::peak() - before, kept + 2 * largest + shards + scratch + largest / 8);
    EXPECT_GT(MemoryMeter::peak() - before, largest);
    // Afterwards only shards and their gradients are left.
    EXPECT_LT(MemoryMeter::current() - before, shards + largest / 4);
    MemoryMeter::set_rank(0);
  });
}

}  // namespace
}  // namespace shardproof
