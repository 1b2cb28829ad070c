#include "base/check.h"

#include <string_view>

namespace shardproof::detail {

void contract_failed(const char* word, const char* condition, const char* file, int line,
                     const std::string& message) {
  // Paths from src or harness on, so that messages do not depend on the machine.
  std::string_view path(file);
  for (std::string_view root : {"/src/", "/harness/"}) {
    if (auto at = path.rfind(root); at != path.npos) {
      path.remove_prefix(at + 1);
      break;
    }
  }
  throw ContractError(
      fmt::format("{} ({} failed: {} at {}:{})", message, word, condition, path, line));
}

}  // namespace shardproof::detail
