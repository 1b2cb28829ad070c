// Text to token ids and back, through the Python tokenizers package.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shardproof {

// The tokenizer of a checkpoint's directory. Each call starts reference/tokenizer_cli.py with the
// project's .venv/bin/python and takes some seconds: one call for all texts, on one rank. Throws
// InputError where Python or the script is missing, and with the script's own message where it
// fails.
class Tokenizer {
 public:
  explicit Tokenizer(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // `chat`: each text is the only message of a user, put into the checkpoint's chat template.
  std::vector<std::vector<int64_t>> encode(const std::vector<std::string>& texts, bool chat) const;
  std::vector<std::string> decode(const std::vector<std::vector<int64_t>>& ids) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace shardproof
