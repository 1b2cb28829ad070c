#include "harness/generation_reference.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

template <class T>
T value_of(const nlohmann::json& entry, const char* key, const std::string& where) {
  try {
    return entry.at(key).get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: {}: {}", where, key, error.what()));
  }
}

nlohmann::json parse(const std::string& file) {
  const nlohmann::json json = nlohmann::json::parse(read_text_file(file), nullptr, false);
  SP_VALIDATE(json.is_array() && !json.empty(),
              "{}: must be a JSON list of continuations, one at least", file);
  return json;
}

}  // namespace

GenerationReference read_generation_reference(const std::filesystem::path& directory,
                                              int64_t tokens) {
  const std::string file = (directory / "generation.json").string();
  GenerationReference reference;
  for (const nlohmann::json& entry : parse(file)) {
    const std::string where = fmt::format("{}: entry {}", file, reference.prompts.size());
    reference.prompts.push_back(value_of<std::string>(entry, "prompt", where));
    reference.prompt_ids.push_back(value_of<std::vector<int64_t>>(entry, "prompt_ids", where));
    Continuation one{value_of<std::vector<int64_t>>(entry, "ids", where),
                     value_of<std::vector<double>>(entry, "margins", where)};
    SP_VALIDATE(!reference.prompt_ids.back().empty() && !one.ids.empty(),
                "{}: prompt_ids and ids must not be empty", where);
    SP_VALIDATE(one.ids.size() == one.margins.size(), "{}: there are {} ids and {} margins", where,
                one.ids.size(), one.margins.size());
    if (const auto most = static_cast<size_t>(tokens); tokens > 0 && one.ids.size() > most) {
      one.ids.resize(most);
      one.margins.resize(most);
    }
    reference.new_tokens = std::max(reference.new_tokens, static_cast<int64_t>(one.ids.size()));
    reference.continuations.push_back(std::move(one));
  }
  SP_VALIDATE(reference.new_tokens >= tokens,
              "{}: {} tokens are to be compared, its longest continuation has {}", file, tokens,
              reference.new_tokens);
  return reference;
}

}  // namespace shardproof
