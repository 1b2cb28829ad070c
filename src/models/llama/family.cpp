#include "models/llama/family.h"

#include "models/llama/config.h"
#include "models/llama/model.h"
#include "models/llama/plan.h"

namespace shardproof {

ModelFamily llama_family() {
  const auto build = [](const std::string& json, const std::string& origin) {
    const LlamaConfig config = parse_llama_config(json, origin);
    return CausalLM{.model = std::make_shared<LlamaForCausalLM>(config),
                    .vocab_size = config.vocab_size,
                    .layers = config.num_hidden_layers,
                    .tied = config.tie_word_embeddings,
                    .initializer_range = config.initializer_range};
  };
  return {.name = "llama", .build = build, .plans = llama_plans()};
}

}  // namespace shardproof
