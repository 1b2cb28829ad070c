// The tokens that end a sequence, as a checkpoint states them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace shardproof {

// `eos_token_id` (one id or a list) of `directory`/generation_config.json or, where that file or
// the key is not there, of config.json; empty where neither has one. Throws InputError naming file
// and key where a file cannot be read or the value is something else.
std::vector<int64_t> read_end_tokens(const std::filesystem::path& directory);

}  // namespace shardproof
