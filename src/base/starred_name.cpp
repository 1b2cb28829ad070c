#include "base/starred_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/names.h"

namespace shardproof {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

StarredName starred(const std::string& name) {
  StarredName result;
  std::vector<std::string> parts = split(name, '.');
  for (std::string& part : parts) {
    if (part.empty() || part.size() > 9 || !std::all_of(part.begin(), part.end(), is_digit))
      continue;
    result.numbers.push_back(std::stoll(part));
    part.assign(1, '*');
  }
  result.pattern = fmt::format("{}", fmt::join(parts, "."));
  return result;
}

}  // namespace shardproof
