#include "analysis/fit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/family.h"

namespace shardproof {
namespace {

TEST(ParseBytes, ReadsUnits) {
  EXPECT_EQ(parse_bytes("40GiB"), int64_t{40} << 30);
  EXPECT_EQ(parse_bytes("40 GiB"), int64_t{40} << 30);
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.5k"), 1536);
  EXPECT_EQ(parse_bytes("512mib"), 512 << 20);
  EXPECT_EQ(parse_bytes("1000000"), 1'000'000);
  EXPECT_EQ(parse_bytes("7B"), 7);
  for (const char* wrong : {"", "GiB", "-1GiB", "4 apples", "4GiBs", "0", "1e30"})
    EXPECT_THROW(parse_bytes(wrong), InputError) << wrong;
}

TEST(ShownBytes, HasOneDigitAfterThePoint) {
  EXPECT_EQ(shown_bytes(1023), "1023 B");
  EXPECT_EQ(shown_bytes(1536), "1.5 KiB");
  EXPECT_EQ(shown_bytes(int64_t{40} << 30), "40.0 GiB");
  EXPECT_EQ(shown_bytes(-(int64_t{3} << 20)), "-3.0 MiB");
}

CausalLM llama(const ModelFamily& family, int64_t layers, int64_t kv_heads) {
  return family.build(fmt::format(
                          R"({{"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024,
               "intermediate_size": 4096, "num_hidden_layers": {}, "num_attention_heads": 16,
               "num_key_value_heads": {}, "rms_norm_eps": 1e-6}})",
                          layers, kv_heads),
                      "test");
}

TEST(Fits, SaysByHowMuchForEachPhase) {
  const FamilyRegistry families = shipped_families();
  const ModelFamily& family = families.find("llama");
  const CausalLM lm = llama(family, 8, 16);
  const DistributedConfig config = config_from_layout("fsdp=4");
  const ResolvedPlan plan = resolve(*lm.model, config.mesh(), config, family.plans);
  const MemoryOptions options{.train = {1, 128}, .generate = {1, 128}};
  const auto verdicts = fits(*lm.model, plan, int64_t{2} << 30, options);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[0].use.phase, Phase::kLoad);
  const int64_t shard = state_of(*lm.model, plan).fullest.parameters;
  // The largest box: a quarter of the embedding.
  EXPECT_EQ(verdicts[0].use.total(), shard + 32000 / 4 * 1024 * 4);
  EXPECT_EQ(verdicts[0].margin(), (int64_t{2} << 30) - verdicts[0].use.total());
  EXPECT_EQ(verdicts[1].use.cache, 2 * 8 * 128 * 1024 * 4);
  EXPECT_GT(verdicts[2].use.total(), 4 * shard);
  for (const Verdict& verdict : verdicts) EXPECT_TRUE(verdict.fits());
  EXPECT_FALSE(fits(*lm.model, plan, verdicts[2].use.total() - 1, options)[2].fits());
}

TEST(Suggest, PutsFirstWhatFitsAndSendsLeast) {
  const FamilyRegistry families = shipped_families();
  const ModelFamily& family = families.find("llama");
  const CausalLM lm = llama(family, 8, 2);
  SuggestOptions options{.available = int64_t{1} << 40, .global_batch = 8};
  options.memory.train.length = 128;
  const auto all = suggest(*lm.model, {}, family.plans, 8, options);
  EXPECT_EQ(all.size(), 10u);  // 2^3 over three axes
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].config.mesh().world_size(), 8);
    EXPECT_TRUE(all[i].fits());
    EXPECT_GE(all[i].sent, all[i - (i > 0 ? 1 : 0)].sent);
  }
  // With many tokens a rank, values cost more than gradients, and gathering comes on top of those.
  SuggestOptions many = options;
  many.global_batch = 4096;
  EXPECT_EQ(suggest(*lm.model, {}, family.plans, 8, many).front().config.layout(),
            "dp_replicate=8");

  // Less than copies need: the first that is left shards.
  options.available = all.front().peak() - 1;
  const auto tight = suggest(*lm.model, {}, family.plans, 8, options);
  EXPECT_EQ(tight.size(), all.size());
  EXPECT_TRUE(tight.front().fits());
  EXPECT_GT(tight.front().config.fsdp_size * tight.front().config.tp_size, 1);
  EXPECT_FALSE(tight.back().fits());
  bool fits = true;
  for (const Suggestion& suggestion : tight) {
    EXPECT_TRUE(fits || !suggestion.fits());
    fits = suggestion.fits();
  }
}

TEST(Suggest, ForALargeModelOnTenThousandRanksTakesSeconds) {
  const FamilyRegistry families = shipped_families();
  const ModelFamily& family = families.find("llama");
  const CausalLM lm = family.build(
      R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 16384,
          "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128,
          "num_key_value_heads": 8, "rms_norm_eps": 1e-6})",
      "test");
  SuggestOptions options{.available = int64_t{80} << 30, .global_batch = 10000};
  options.memory = {.sizes = ItemSizes::all(2), .train = {1, 4096}};
  options.dtype = at::kBFloat16;
  const auto start = std::chrono::steady_clock::now();
  const auto all = suggest(*lm.model, {}, family.plans, 10000, options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  std::cout << fmt::format("{} layouts in {:.2f} s\n", all.size(), seconds);
  EXPECT_LT(seconds, 30);
  ASSERT_FALSE(all.empty());
  EXPECT_GT(all.front().config.fsdp_size, 1);  // 2 bytes * 4 * 406e9 elements go into no 80 GiB
}

TEST(Suggest, LeavesOutWhatLeavesARankEmpty) {
  const FamilyRegistry families = shipped_families();
  const ModelFamily& family = families.find("llama");
  const CausalLM lm = family.build(
      R"({"model_type": "llama", "vocab_size": 11, "hidden_size": 12, "intermediate_size": 10,
          "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 3,
          "head_dim": 4, "rms_norm_eps": 1e-6})",
      "test");
  SuggestOptions options{.available = int64_t{1} << 40};
  for (const Suggestion& suggestion : suggest(*lm.model, {}, family.plans, 4, options))
    EXPECT_LT(suggestion.config.tp_size, 4);  // 3 heads on 4 ranks
}

}  // namespace
}  // namespace shardproof
