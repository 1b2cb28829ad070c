// What generation is compared with: continuations that stock transformers made, in float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardproof {

// New tokens, and for each of them the highest logit minus the second highest.
struct Continuation {
  std::vector<int64_t> ids;
  std::vector<double> margins;
};

struct GenerationReference {
  std::vector<std::string> prompts;  // for people
  std::vector<std::vector<int64_t>> prompt_ids;
  std::vector<Continuation> continuations;  // one for each prompt
  int64_t new_tokens = 0;                   // of the longest
};

// `directory`/generation.json, a list of
//   {"prompt": text, "prompt_ids": [...], "ids": [...], "margins": [...]}
// (reference/greedy.py makes it; what else stands there is for people), each cut after `tokens` new
// tokens; 0: whole. Throws InputError naming the file, the number of the entry (from 0) and the key
// for what is missing, of another type or empty, and where no continuation is `tokens` long.
GenerationReference read_generation_reference(const std::filesystem::path& directory,
                                              int64_t tokens);

}  // namespace shardproof
