#include "models/family.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/names.h"
#include "io/quote.h"
#include "io/text_file.h"
#include "models/deepseek_v3/family.h"
#include "models/gemma3/family.h"
#include "models/gpt_oss/family.h"
#include "models/json_fields.h"
#include "models/llama/family.h"
#include "models/mistral/family.h"
#include "models/mixtral/family.h"
#include "models/phi3/family.h"
#include "models/qwen2/family.h"
#include "models/qwen3/family.h"
#include "models/qwen3_moe/family.h"

namespace shardproof {

void FamilyRegistry::add(ModelFamily family) {
  const auto known = names();
  SP_EXPECT(std::find(known.begin(), known.end(), family.name) == known.end(),
            "the model family '{}' is registered already", family.name);
  families_.push_back(std::move(family));
}

const ModelFamily& FamilyRegistry::find(const std::string& model_type) const {
  for (const ModelFamily& family : families_) {
    if (family.name == model_type) return family;
  }
  const std::string near = nearest_word(model_type, names());
  throw InputError(fmt::format("the model type {} is not known{}; known are: {}", quote(model_type),
                               near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near),
                               fmt::join(names(), ", ")));
}

std::vector<std::string> FamilyRegistry::names() const {
  std::vector<std::string> names;
  for (const ModelFamily& family : families_) names.push_back(family.name);
  return names;
}

FamilyRegistry shipped_families() {
  FamilyRegistry registry;
  for (const auto& family :
       {llama_family, mistral_family, qwen2_family, qwen3_family, phi3_family, gemma3_family,
        mixtral_family, gpt_oss_family, qwen3_moe_family, deepseek_v3_family})
    registry.add(family());
  return registry;
}

LoadedModel build_from_directory(const FamilyRegistry& families, const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "config.json").string();
  const std::string text = read_text_file(path);
  const std::string model_type = JsonFields::parse(text, path).text("model_type");
  const ModelFamily* family = nullptr;
  try {
    family = &families.find(model_type);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: key 'model_type': {}", path, error.what()));
  }
  return {.causal_lm = family->build(text, path), .family = family};
}

}  // namespace shardproof
