#include "analysis/state.h"

#include <gtest/gtest.h>

#include "analysis/testing.h"

namespace shardproof {
namespace {

std::string llama_json(int64_t layers, int64_t hidden, int64_t width, int64_t heads,
                       int64_t kv_heads, int64_t head_dim, int64_t vocab) {
  return fmt::format(
      R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {},
           "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {},
           "head_dim": {}, "tie_word_embeddings": false, "rms_norm_eps": 1e-6}})",
      vocab, hidden, width, layers, heads, kv_heads, head_dim);
}

struct Planned {
  CausalLM lm;
  ResolvedPlan plan;
};

Planned planned(const std::string& json, const std::string& layout) {
  const FamilyRegistry families = shipped_families();
  const ModelFamily& family = families.find("llama");
  const DistributedConfig config = config_from_layout(layout);
  Planned made{family.build(json, "test"), {}};
  made.plan = resolve(*made.lm.model, config.mesh(), config, family.plans);
  return made;
}

const ParameterState& find(const std::vector<ParameterState>& states, const std::string& name) {
  return *std::find_if(states.begin(), states.end(),
                       [&](const ParameterState& state) { return state.name == name; });
}

TEST(State, OfOneRankByParameter) {
  // 3 query heads of 4 on 3 key/value heads; tp=2 gives 2 and 1, fsdp=2 halves rows.
  const Planned p = planned(llama_json(1, 12, 10, 3, 3, 4, 11), "fsdp=2,tp=2");
  const auto first = parameters_on(*p.lm.model, p.plan, 0, ItemSizes::all(8));
  const ParameterState& query = find(first, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(query.placement, "tp S(0), fsdp S(0)");
  EXPECT_EQ(query.unit, "model.layers.0");
  EXPECT_EQ(query.local_shape, (std::vector<int64_t>{4, 12}));
  EXPECT_EQ(query.view_elements, 8 * 12);
  EXPECT_EQ(query.bytes, 4 * 12 * 8);
  const ParameterState& down = find(first, "model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(down.placement, "tp S(1), fsdp S(0)");
  EXPECT_EQ(down.local_shape, (std::vector<int64_t>{6, 5}));
  const auto last = parameters_on(*p.lm.model, p.plan, 3, ItemSizes::all(8));
  EXPECT_EQ(find(last, "model.layers.0.self_attn.q_proj.weight").local_shape,
            (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(find(last, "model.norm.weight").placement, "fsdp S(0)");
}

TEST(State, TotalsOfTheFullestAndTheEmptiestRank) {
  const Planned p = planned(llama_json(1, 12, 10, 3, 3, 4, 11), "dp_replicate=2,fsdp=2,tp=2");
  const ItemSizes sizes{.parameter = 2, .gradient = 4, .moment = 8, .value = 2};
  const ModelState state = state_of(*p.lm.model, p.plan, sizes);
  RankState fullest, emptiest;
  for (int64_t rank = 0; rank < 8; ++rank) {
    int64_t elements = 0;
    for (const ParameterState& one : parameters_on(*p.lm.model, p.plan, rank))
      elements += one.elements;
    const RankState here = state_on(*p.lm.model, p.plan, rank, sizes);
    EXPECT_EQ(here, (RankState{rank, elements, 2 * elements, 4 * elements, 16 * elements}));
    if (rank == 0 || here.total() > fullest.total()) fullest = here;
    if (rank == 0 || here.total() < emptiest.total()) emptiest = here;
  }
  EXPECT_EQ(state.fullest, fullest);
  EXPECT_EQ(state.emptiest, emptiest);
  EXPECT_EQ(state.fullest.rank, 0);
  EXPECT_EQ(state.emptiest.rank, 3);
  // Embedding, head; q, k, v, o; gate, up, down; three norms.
  EXPECT_EQ(state.elements, 2 * 11 * 12 + 4 * 12 * 12 + 3 * 10 * 12 + 3 * 12);
}

TEST(State, FrozenParametersHaveNoGradientAndNoMoments) {
  Planned p = planned(llama_json(1, 12, 10, 3, 3, 4, 11), "fsdp=2");
  for (const ParamPtr& parameter : p.lm.model->all_parameters())
    parameter->requires_grad = parameter->name() == "model.norm.weight";
  const RankState state = state_on(*p.lm.model, p.plan, 0, ItemSizes::all(4));
  EXPECT_EQ(state.gradients, 6 * 4);
  EXPECT_EQ(state.moments, 6 * 8);
}

TEST(State, OfALargeModelOnTenThousandRanksTakesNoTime) {
  const Planned p =
      planned(llama_json(126, 16384, 53248, 128, 8, 128, 128256), "dp_replicate=10,fsdp=125,tp=8");
  const auto start = std::chrono::steady_clock::now();
  const ModelState state = state_of(*p.lm.model, p.plan, ItemSizes::all(2));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 0.5);
  EXPECT_EQ(state.elements, 405853388800);
  EXPECT_EQ(state.fullest.rank, 0);
  // Of 2048 query rows a tp rank 125 get 16, and the first 48 one more: no other remainder is as
  // large. The first of those without is fsdp coordinate 48.
  EXPECT_EQ(state.emptiest.rank, 48 * 8);
  EXPECT_NEAR(static_cast<double>(state.fullest.elements) / (405853388800 / 1000.0), 1, 0.03);
}

}  // namespace
}  // namespace shardproof
