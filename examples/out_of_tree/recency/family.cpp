#include "recency/family.h"

#include "models/json_fields.h"
#include "recency/model.h"

namespace recency {
namespace {

using namespace shardproof;

CausalLM build(const std::string& json, const std::string& origin) {
  const JsonFields fields = JsonFields::parse(json, origin);
  const Config config{.vocab_size = fields.size("vocab_size"),
                      .hidden_size = fields.size("hidden_size"),
                      .intermediate_size = fields.size("intermediate_size"),
                      .num_hidden_layers = fields.size("num_hidden_layers"),
                      .initializer_range = fields.positive("initializer_range", 0.02)};
  return {.model = std::make_shared<Model>(config),
          .vocab_size = config.vocab_size,
          .layers = config.num_hidden_layers,
          .tied = false,
          .initializer_range = config.initializer_range};
}

// Which style each module has under tensor parallelism, and which modules FSDP gathers together.
// What no rule names is whole on every rank.
ModelPlans plans() {
  return {.tp = {{"embed", "embedding_rowwise"},
                 {"blocks.*.mlp.gate_proj", "colwise"},
                 {"blocks.*.mlp.up_proj", "colwise"},
                 {"blocks.*.mlp.down_proj", "rowwise"},
                 {"head", "colwise_gather_output"}},
          .fsdp = {{"embed", "free_full_weight"},
                   {"blocks.*", "free_full_weight"},
                   {"norm", "keep_full_weight"},
                   {"head", "keep_full_weight"}}};
}

}  // namespace

ModelFamily family() { return {.name = "recency", .build = build, .plans = plans()}; }

}  // namespace recency
