#include "harness/scenario.h"

namespace shardproof {

const char* ranks_as_name(RanksAs ranks_as) {
  return ranks_as == RanksAs::kThreads ? "threads" : "processes";
}

std::string model_name(const std::filesystem::path& directory) {
  const std::filesystem::path last = directory.lexically_normal();
  return last.has_filename() ? last.filename().string() : last.parent_path().filename().string();
}

}  // namespace shardproof
