#include "models/decoder/family.h"

#include "models/decoder/model.h"

namespace shardproof {

ModelFamily decoder_family(
    std::string model_type,
    std::function<DecoderOptions(const std::string& json, const std::string& origin)> parse,
    ModelPlans plans, WeightMap weights) {
  const auto build = [parse = std::move(parse)](const std::string& json,
                                                const std::string& origin) {
    const DecoderOptions options = parse(json, origin);
    return CausalLM{.model = std::make_shared<DecoderForCausalLM>(options),
                    .vocab_size = options.vocab_size,
                    .layers = static_cast<int64_t>(options.layers.size()),
                    .tied = options.tied,
                    .initializer_range = options.initializer_range};
  };
  return {.name = std::move(model_type),
          .build = build,
          .plans = std::move(plans),
          .weights = std::move(weights)};
}

}  // namespace shardproof
