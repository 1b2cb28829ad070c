#include "models/end_tokens.h"

#include "base/check.h"
#include "io/text_file.h"
#include "models/json_fields.h"

namespace shardproof {

std::vector<int64_t> read_end_tokens(const std::filesystem::path& directory) {
  const std::string key = "eos_token_id";
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path path = directory / name;
    if (!std::filesystem::exists(path)) continue;
    const JsonFields fields = JsonFields::parse(read_text_file(path), path.string());
    if (fields.has(key)) return fields.integers(key);
  }
  return {};
}

}  // namespace shardproof
