#include "train/initialize.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/memory_meter.h"
#include "base/rng.h"
#include "comm/threads/run_ranks.h"
#include "models/family.h"
#include "nn/testing.h"
#include "parallel/parallelize.h"

namespace shardproof {
namespace {

constexpr uint64_t kSeed = 41;

CausalLM llama(bool tied, int64_t vocab = 101) {
  const std::string json = fmt::format(
      R"({{"vocab_size": {}, "hidden_size": 54, "intermediate_size": 29, "num_hidden_layers": 2,
          "num_attention_heads": 9, "num_key_value_heads": 3, "attention_bias": true,
          "mlp_bias": true, "pad_token_id": 3, "initializer_range": 0.125,
          "tie_word_embeddings": {}}})",
      vocab, tied);
  return shipped_families().find("llama").build(json, "config.json");
}

void spread(const CausalLM& causal_lm, const CommPtr& world, const std::string& layout,
            at::ScalarType dtype) {
  const DistributedConfig config = config_from_layout(layout);
  parallelize(*causal_lm.model, std::make_shared<DeviceMesh>(world, config.mesh()), config,
              shipped_families().find("llama").plans, {.dtype = dtype});
}

testing::Whole unsharded(bool tied, at::ScalarType dtype, const InitializeOptions& options) {
  const CausalLM whole = llama(tied);
  for (const ParamPtr& parameter : whole.model->all_parameters()) parameter->place_whole(dtype);
  initialize_parameters(*whole.model, kSeed, options);
  testing::Whole values;
  for (const ParamPtr& parameter : whole.model->all_parameters())
    values[parameter->name()] = parameter->kept();
  return values;
}

TEST(Initialize, StartsAsEachModuleStates) {
  const CausalLM causal_lm = llama(/*tied=*/false);
  EXPECT_EQ(causal_lm.initializer_range, 0.125);
  const testing::Whole values =
      unsharded(false, at::kDouble, {.standard_deviation = causal_lm.initializer_range});
  const at::Tensor& embedding = values.at("model.embed_tokens.weight");
  EXPECT_NEAR(embedding.std().item<double>(), 0.125, 0.01);
  EXPECT_NEAR(embedding.mean().item<double>(), 0, 0.01);
  EXPECT_EQ(embedding[3].abs().sum().item<double>(), 0);  // the padding row
  // The head's rows are not the embedding's, and have no padding.
  EXPECT_GT((values.at("lm_head.weight") - embedding).abs().min().item<double>(), 0);
  EXPECT_EQ(embedding[2][5].item<double>(),
            0.125 * CounterRng(kSeed, "model.embed_tokens.weight").normal(2 * 54 + 5));
  EXPECT_TRUE(at::equal(values.at("model.norm.weight"), at::ones({54}, at::kDouble)));
  for (const char* bias : {"self_attn.k_proj.bias", "mlp.down_proj.bias"})
    EXPECT_EQ(values.at(fmt::format("model.layers.1.{}", bias)).abs().max().item<double>(), 0);
}

TEST(Initialize, SpreadMovesZerosAndOnesButNotThePaddingRow) {
  const testing::Whole values = unsharded(true, at::kDouble, {.spread = 0.5});
  const at::Tensor norm = values.at("model.norm.weight");
  EXPECT_NEAR(norm.mean().item<double>(), 1, 0.25);
  EXPECT_NEAR(norm.std().item<double>(), 0.5, 0.15);
  EXPECT_GT(values.at("model.layers.0.mlp.up_proj.bias").abs().min().item<double>(), 0);
  EXPECT_EQ(values.at("model.embed_tokens.weight")[3].abs().max().item<double>(), 0);
}

TEST(Initialize, NumbersAreDrawnInDoubleAndConvertedOnce) {
  const testing::Whole wide = unsharded(false, at::kDouble, {});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [name, value] : unsharded(false, dtype, {}))
      EXPECT_TRUE(at::equal(value, wide.at(name).to(dtype))) << name;
}

struct Case {
  std::string layout;
  bool tied;
  at::ScalarType dtype;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.layout << (one.tied ? " tied " : " untied ") << one.dtype;
}

class InitializeOn : public ::testing::TestWithParam<Case> {};

TEST_P(InitializeOn, EveryRankMakesItsPartOfTheUnshardedValues) {
  const Case& param = GetParam();
  const InitializeOptions options{.standard_deviation = 0.02, .spread = 0.1};
  const testing::Whole whole = unsharded(param.tied, param.dtype, options);
  const auto ranks = static_cast<int>(config_from_layout(param.layout).mesh().world_size());
  run_ranks(ranks, [&](const CommPtr& world) {
    const CausalLM mine = llama(param.tied);
    spread(mine, world, param.layout, param.dtype);
    initialize_parameters(*mine.model, kSeed, options);
    for (const ParamPtr& parameter : mine.model->all_parameters()) {
      const at::Tensor wanted =
          testing::take(whole.at(parameter->name()), parameter->kept_region());
      EXPECT_TRUE(at::equal(parameter->kept(), wanted)) << world->rank() << parameter->name();
    }
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* layout : {"tp=2", "tp=3", "tp=4", "tp=6", "fsdp=2", "fsdp=3", "fsdp=4",
                             "fsdp=2,tp=2", "dp_replicate=2,tp=2"})
    for (const bool tied : {true, false})
      for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16})
        all.push_back({layout, tied, dtype});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Layouts, InitializeOn, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.layout, info.param.tied ? "tied" : "untied",
                                 toString(info.param.dtype));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

// 4001 x 54 doubles, 1.7 MB, are the largest tensor: a rank never holds more than its quarter of
// all, and 32 KiB while it draws.
TEST(Initialize, NoRankEverHoldsAWholeTensor) {
  MemoryMeter::install();
  for (const std::string layout : {"tp=4", "fsdp=4"}) {
    run_ranks(4, [&](const CommPtr& world) {
      MemoryMeter::set_rank(world->rank());
      const CausalLM mine = llama(/*tied=*/false, /*vocab=*/4001);
      const int64_t before = MemoryMeter::current();
      MemoryMeter::reset_peak();
      spread(mine, world, layout, at::kDouble);
      initialize_parameters(*mine.model, kSeed);
      int64_t all = 0;
      int64_t own = 0;
      for (const ParamPtr& parameter : mine.model->all_parameters()) {
        all += numel(whole_region(parameter->shape())) * 8;
        own += static_cast<int64_t>(parameter->kept().nbytes());
      }
      EXPECT_LT(own, all * 3 / 10) << layout;
      EXPECT_LT(MemoryMeter::peak() - before, own + 48 * 1024) << layout << " of " << all;
    });
  }
}

class Bare final : public Module {
 public:
  Bare() : Module("Bare", {.inputs = {{"input"}}}) {
    add_parameter("scale",
                  std::make_shared<Parameter>(std::vector<int64_t>{3}, std::vector<Cut>(1)));
    finish();
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    return {{"output", inputs.at("input")}};
  }
};

TEST(Initialize, RefusesAModuleThatDoesNotStateIt) {
  Bare bare;
  EXPECT_THROW(initialize_parameters(bare, kSeed), ContractError);  // not placed either
  bare.all_parameters()[0]->place_whole(at::kDouble);
  EXPECT_THROW(initialize_parameters(bare, kSeed), ContractError);
}

}  // namespace
}  // namespace shardproof
