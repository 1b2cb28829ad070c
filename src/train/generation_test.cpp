// Generation of the committed fixtures in float64, ranks as threads.
#include "train/generation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/memory_meter.h"
#include "base/test_source.h"
#include "checkpoint/load.h"
#include "comm/threads/run_ranks.h"
#include "models/family.h"
#include "models/llama/family.h"
#include "nn/attention.h"
#include "nn/testing.h"
#include "parallel/parallelize.h"

namespace shardproof {
namespace {

using Prompts = std::vector<std::vector<int64_t>>;
const Prompts kPrompts = {{5, 17}, {80, 3, 41}, {11, 29, 2, 63, 8}};
constexpr int64_t kSteps = 8;

const std::vector<std::string> kFixtures = {"llama_untied_9_3", "llama_tied_4_1",
                                            "llama_linear_6_2"};

std::filesystem::path fixture(const std::string& name) {
  return source_folder() / "fixtures" / name;
}

struct Loaded {
  MeshPtr mesh;  // lives as long as the model: its hooks talk over it
  std::shared_ptr<Module> model;
};

Loaded load(const std::string& name, const std::string& layout, const CommPtr& world) {
  const FamilyRegistry families = shipped_families();
  const LoadedModel loaded = build_from_directory(families, fixture(name).string());
  const DistributedConfig config = config_from_layout(layout);
  const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
  parallelize(*loaded.causal_lm.model, mesh, config, loaded.family->plans, {.dtype = at::kDouble});
  load_parameters(*loaded.causal_lm.model, CheckpointFiles(fixture(name)));
  return {mesh, loaded.causal_lm.model};
}

int ranks_of(const std::string& layout) {
  return static_cast<int>(config_from_layout(layout).mesh().world_size());
}

// What each rank of the layout generated.
std::vector<Generated> generate_on(const std::string& name, const std::string& layout,
                                   const Prompts& prompts, const GenerateOptions& options) {
  std::vector<Generated> results(ranks_of(layout));
  run_ranks(ranks_of(layout), [&](const CommPtr& world) {
    const auto [mesh, model] = load(name, layout, world);
    results[world->rank()] = generate(*model, prompts, options, *world);
  });
  return results;
}

Generated generate_alone(const std::string& name, const Prompts& prompts,
                         const GenerateOptions& options) {
  return generate_on(name, "single", prompts, options).front();
}

void expect_same(const Generated& got, const Generated& truth) {
  EXPECT_EQ(got.tokens, truth.tokens);
  EXPECT_EQ(got.ended, truth.ended);
  EXPECT_EQ(got.steps, truth.steps);
  ASSERT_EQ(got.margins.size(), truth.margins.size());
  for (size_t i = 0; i < got.margins.size(); ++i) {
    ASSERT_EQ(got.margins[i].size(), truth.margins[i].size());
    for (size_t t = 0; t < got.margins[i].size(); ++t)
      EXPECT_NEAR(got.margins[i][t], truth.margins[i][t], 1e-10) << i << ", step " << t;
  }
}

TEST(Generation, ABatchOfUnequalPromptsGivesWhatEachGivesAlone) {
  for (const std::string& name : kFixtures) {
    for (const bool use_cache : {true, false}) {
      SCOPED_TRACE(name + (use_cache ? " with cache" : " without cache"));
      const GenerateOptions options{.max_new_tokens = kSteps, .use_cache = use_cache};
      const Generated batch = generate_alone(name, kPrompts, options);
      for (size_t i = 0; i < kPrompts.size(); ++i) {
        const Generated alone = generate_alone(name, {kPrompts[i]}, options);
        EXPECT_EQ(batch.tokens[i], alone.tokens[0]);
        ASSERT_EQ(batch.margins[i].size(), alone.margins[0].size());
        for (size_t t = 0; t < alone.margins[0].size(); ++t)
          EXPECT_NEAR(batch.margins[i][t], alone.margins[0][t], 1e-10) << i << ", step " << t;
      }
    }
  }
}

// The first token is the highest logit of a plain call, without mask, positions or cache.
TEST(Generation, StartsWithTheHighestLogit) {
  const Generated batch = generate_alone("llama_untied_9_3", kPrompts, {.max_new_tokens = 1});
  run_ranks(1, [&](const CommPtr& world) {
    const auto [mesh, model] = load("llama_untied_9_3", "single", world);
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      const at::Tensor logits =
          (*model)(at::tensor(kPrompts[i], at::kLong).unsqueeze(0)).detach()[0].select(0, -1);
      EXPECT_EQ(batch.tokens[i], std::vector{logits.argmax().item<int64_t>()});
      const auto [highest, which] = logits.topk(2);
      EXPECT_NEAR(batch.margins[i][0], (highest[0] - highest[1]).item<double>(), 1e-12);
    }
  });
  EXPECT_EQ(batch.cache_bytes, 2 * 2 * 3 * 3 * 5 * 6 * 8)
      << "two layers of keys and values: 3 sequences, 3 heads, 5 tokens, head_dim 6";
}

TEST(Generation, EveryLayoutGivesTheTokensOfTheUnshardedModel) {
  for (const std::string& name : kFixtures) {
    const Generated truth = generate_alone(name, kPrompts, {.max_new_tokens = kSteps});
    EXPECT_EQ(truth.steps, kSteps);
    for (const char* layout :
         {"tp=2", "tp=3", "tp=4", "tp=6", "fsdp=2", "fsdp=4", "fsdp=2,tp=2", "dp_replicate=2"}) {
      SCOPED_TRACE(name + " " + layout);
      for (const Generated& got : generate_on(name, layout, kPrompts, {.max_new_tokens = kSteps}))
        expect_same(got, truth);
    }
    SCOPED_TRACE(name + " tp=2 without cache");
    for (const Generated& got :
         generate_on(name, "tp=2", kPrompts, {.max_new_tokens = kSteps, .use_cache = false})) {
      expect_same(got, truth);
      EXPECT_EQ(got.cache_bytes, 0);
    }
  }
}

TEST(Generation, CachesAreSizedByLocalHeads) {
  const GenerateOptions options{.max_new_tokens = 2};
  const int64_t whole = generate_alone("llama_untied_9_3", kPrompts, options).cache_bytes;
  for (const Generated& rank : generate_on("llama_untied_9_3", "tp=3", kPrompts, options))
    EXPECT_EQ(rank.cache_bytes, whole / 3);
  int64_t sum = 0;  // 3 key/value heads on 2 ranks
  for (const Generated& rank : generate_on("llama_untied_9_3", "tp=2", kPrompts, options)) {
    EXPECT_LT(rank.cache_bytes, whole);
    sum += rank.cache_bytes;
  }
  EXPECT_EQ(sum, whole);
}

TEST(Generation, AllRanksShareOneDraw) {
  GenerateOptions options{.max_new_tokens = 12,
                          .sampling = {.temperature = 1, .top_k = 60, .top_p = 0.95, .seed = 11}};
  const Generated truth = generate_alone("llama_untied_9_3", kPrompts, options);
  EXPECT_NE(truth.tokens,
            generate_alone("llama_untied_9_3", kPrompts, {.max_new_tokens = 12}).tokens);
  for (const char* layout : {"tp=2", "fsdp=2", "fsdp=2,tp=2", "dp_replicate=2"}) {
    SCOPED_TRACE(layout);
    for (const Generated& got : generate_on("llama_untied_9_3", layout, kPrompts, options))
      expect_same(got, truth);
  }
  options.use_cache = false;
  expect_same(generate_alone("llama_untied_9_3", kPrompts, options), truth);
  options.sampling.seed = 12;
  EXPECT_NE(generate_alone("llama_untied_9_3", kPrompts, options).tokens, truth.tokens);
}

// Sampled, so that tokens differ: the second sequence ends at its fourth token, the third at its
// sixth.
TEST(Generation, ASequenceThatEndsLeavesTheOthersAsTheyWere) {
  GenerateOptions options{.max_new_tokens = kSteps, .sampling = {.temperature = 1, .seed = 4}};
  const Generated open = generate_alone("llama_untied_9_3", kPrompts, options);
  Generated wanted = open;
  options.eos_ids = {open.tokens[1][3], open.tokens[2][5]};
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    auto& tokens = wanted.tokens[i];
    const auto end = std::find_first_of(tokens.begin(), tokens.end(), options.eos_ids.begin(),
                                        options.eos_ids.end());
    wanted.ended[i] = end != tokens.end();
    if (wanted.ended[i]) tokens.erase(end + 1, tokens.end());
    wanted.margins[i].resize(tokens.size());
  }
  ASSERT_EQ(wanted.ended, (std::vector<bool>{false, true, true})) << "another seed is needed";
  ASSERT_EQ(wanted.tokens[1].size(), 4u);
  for (const char* layout : {"single", "tp=2", "fsdp=2,tp=2"}) {
    SCOPED_TRACE(layout);
    for (const Generated& got : generate_on("llama_untied_9_3", layout, kPrompts, options))
      expect_same(got, wanted);
  }
}

TEST(Generation, StopsWhenAllHaveEnded) {
  GenerateOptions options{.max_new_tokens = kSteps, .sampling = {.temperature = 1, .seed = 4}};
  const Prompts prompts = {kPrompts[0], kPrompts[1]};
  const Generated open = generate_alone("llama_untied_9_3", prompts, options);
  options.eos_ids = {open.tokens[0][1], open.tokens[1][3]};
  for (const Generated& got : generate_on("llama_untied_9_3", "tp=2", prompts, options)) {
    EXPECT_EQ(got.ended, (std::vector<bool>{true, true}));
    EXPECT_EQ(got.tokens[0].size(), 2u);
    EXPECT_EQ(got.tokens[1].size(), 4u);
    EXPECT_EQ(got.steps, 4);
  }
}

TEST(Generation, ACacheContinuesPositionsWithoutAMask) {
  run_ranks(1, [&](const CommPtr& world) {
    const auto [mesh, model] = load("llama_tied_4_1", "single", world);
    const at::Tensor ids = at::tensor(kPrompts[2], at::kLong).unsqueeze(0);
    const at::NoGradGuard no_grad;
    const at::Tensor truth = (*model)(ids);
    for (Module* module : model->modules()) {
      if (auto* holder = dynamic_cast<CacheHolder*>(module))
        holder->set_cache(holder->make_cache(1, 5));
    }
    const at::Tensor first = (*model)(ids.narrow(1, 0, 3));
    const at::Tensor second = (*model)(ids.narrow(1, 3, 2));
    EXPECT_LT(testing::relative_error(at::cat({first, second}, 1), truth), 1e-13);
  });
}

TEST(Generation, WrongCallsAreRefused) {
  run_ranks(1, [&](const CommPtr& world) {
    const auto [mesh, model] = load("llama_tied_4_1", "single", world);
    const auto call = [&model = *model, &world](const Prompts& prompts,
                                                const GenerateOptions& options) {
      generate(model, prompts, options, *world);
    };
    EXPECT_THROW(call({}, {}), InputError);
    EXPECT_THROW(call({{1, 2}, {}}, {}), InputError);
    EXPECT_THROW(call({{1, 97}}, {}), InputError) << "the vocabulary has 97 tokens";
    EXPECT_THROW(call({{1}}, {.max_new_tokens = 0}), InputError);
    EXPECT_THROW(call({{1}}, {.sampling = {.temperature = -1}}), InputError);
    EXPECT_NO_THROW(call({{1}}, {.max_new_tokens = 1})) << "a call that failed leaves no cache";
  });
}

TEST(Generation, LogitsThatAreNotNumbersAreAnErrorOnAllRanks) {
  run_ranks(2, [&](const CommPtr& world) {
    const auto [mesh, model] = load("llama_untied_9_3", "tp=2", world);
    for (const ParamPtr& parameter : model->all_parameters()) {
      if (parameter->name() == "model.norm.weight") parameter->kept().fill_(NAN);
    }
    EXPECT_THROW(generate(*model, kPrompts, {}, *world), ContractError);
  });
}

struct Memory {
  int64_t shards = 0;  // of this rank, and whatever else is there before
  int64_t largest_unit = 0, kept_units = 0, cache = 0;
  int64_t peak = 0;  // beyond `shards`
};

// Four layers of 2 MiB each, three tokens and five more: weights dominate.
Memory measure(const CommPtr& world, const DistributedConfig& config) {
  const ModelFamily family = llama_family();
  const CausalLM lm = family.build(R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 128,
      "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 32, "head_dim": 4,
      "tie_word_embeddings": true, "rms_norm_eps": 1e-6})",
                                   "test");
  const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
  const auto plan = parallelize(*lm.model, mesh, config, family.plans, {.dtype = at::kDouble});
  std::map<std::string, int64_t> bytes;
  Memory memory;
  for (const ParamPtr& parameter : lm.model->all_parameters()) {
    const at::Tensor& kept = parameter->kept();
    kept.copy_(at::sin(at::arange(kept.numel(), at::kDouble)).view(kept.sizes()) * 0.1);
    bytes[parameter->name()] = parameter->view().numel() * 8;
    memory.shards += static_cast<int64_t>(kept.nbytes());
  }
  for (const ResolvedUnit& unit : plan->units) {
    int64_t size = 0;
    for (const std::string& name : unit.parameters) size += bytes.at(name);
    if (!unit.free_after_forward) memory.kept_units += size;
    memory.largest_unit = std::max(memory.largest_unit, size);
  }
  const int64_t before = MemoryMeter::current();
  EXPECT_GE(before, memory.shards);
  EXPECT_LT(before, memory.shards + (int64_t{1} << 19)) << "views hold memory before a call";
  memory.shards = before;
  MemoryMeter::reset_peak();
  memory.cache = generate(*lm.model, {{1, 2, 3}}, {.max_new_tokens = 6}, *world).cache_bytes;
  memory.peak = MemoryMeter::peak() - before;
  EXPECT_LT(MemoryMeter::current() - before, int64_t{1} << 16) << "something was left behind";
  return memory;
}

TEST(GenerationMemory, NoMoreThanTwoUnitsAndTheCacheBesideTheShards) {
  MemoryMeter::install();
  run_ranks(4, [&](const CommPtr& world) {
    MemoryMeter::set_rank(world->rank());
    DistributedConfig config = config_from_layout("fsdp=4");
    const Memory memory = measure(world, config);
    EXPECT_EQ(memory.cache, 4 * 2 * 32 * 8 * 4 * 8);
    // A unit as it arrives and its views; the own shard on its way out may be gone by then.
    const int64_t gathering = 2 * memory.largest_unit + memory.largest_unit / 4;
    const int64_t activations = 3 * (16 * 128 + 4 * 512) * 8;  // of three tokens
    const int64_t allowed = gathering + memory.kept_units + memory.cache + activations;
    EXPECT_LE(memory.peak, allowed);
    EXPECT_GE(memory.peak, 2 * memory.largest_unit);
    if (world->rank() == 0) {
      RecordProperty("peak_bytes", std::to_string(memory.peak));
      RecordProperty("allowed_bytes", std::to_string(allowed));
    }

    // All layers in one unit, and the same bound is passed: it would be noticed.
    config.fsdp_plan = Plan{};
    EXPECT_GT(measure(world, config).peak, allowed);
    MemoryMeter::set_rank(0);
  });
}

}  // namespace
}  // namespace shardproof
