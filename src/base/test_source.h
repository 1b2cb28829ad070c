// For tests that read what is committed: fixtures, schemas.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace shardproof {

// The folder of the project, which the build tells tests (SHARDPROOF_SOURCE_DIR). Throws where it
// does not: a test that finds nothing to look at must not pass.
inline std::filesystem::path source_folder() {
  const char* root = std::getenv("SHARDPROOF_SOURCE_DIR");
  if (root == nullptr)
    throw std::runtime_error("SHARDPROOF_SOURCE_DIR is not set: run ctest, or set it");
  return root;
}

}  // namespace shardproof
