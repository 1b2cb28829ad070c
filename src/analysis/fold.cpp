#include "analysis/fold.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// A message with the numbers that stand behind a dot inside a name taken out.
std::string without_layers(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] != '.' || i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0 ||
        is_digit(text[i - 1]))
      continue;
    size_t end = i + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > i + 1 &&
        (end == text.size() || std::isalpha(static_cast<unsigned char>(text[end])) == 0)) {
      result += '*';
      i = end - 1;
    }
  }
  return result;
}

}  // namespace

std::string shown_numbers(const std::vector<int64_t>& numbers) {
  const std::set<int64_t> sorted(numbers.begin(), numbers.end());
  std::vector<std::string> runs;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const int64_t first = *at;
    int64_t last = first;
    for (++at; at != sorted.end() && *at == last + 1; ++at) last = *at;
    runs.push_back(first == last ? std::to_string(first) : fmt::format("{}..{}", first, last));
  }
  if (sorted.size() == 1) return runs.front();
  return fmt::format("{{{}}}", fmt::join(runs, ","));
}

std::string folded(const std::vector<std::string>& names) {
  SP_EXPECT(!names.empty(), "no name to fold");
  std::vector<std::vector<int64_t>> places;
  const std::string pattern = starred(names.front()).pattern;
  for (const std::string& name : names) {
    const StarredName own = starred(name);
    SP_EXPECT(own.pattern == pattern, "{} and {} are not of one pattern", names.front(), name);
    places.resize(own.numbers.size());
    for (size_t i = 0; i < own.numbers.size(); ++i) places[i].push_back(own.numbers[i]);
  }
  std::vector<std::string> parts = split(pattern, '.');
  size_t place = 0;
  for (std::string& part : parts)
    if (part == "*") part = shown_numbers(places[place++]);
  return fmt::format("{}", fmt::join(parts, "."));
}

Findings folded(const Findings& findings) {
  struct Group {
    Finding first;
    int64_t more = 0;
  };
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const Finding& finding : findings) {
    const auto [at, fresh] =
        index.try_emplace({finding.check, without_layers(finding.message)}, groups.size());
    if (fresh) {
      groups.push_back({finding});
    } else {
      ++groups[at->second].more;
    }
  }
  Findings result;
  for (const auto severity : {Finding::Severity::kError, Finding::Severity::kNote}) {
    for (const Group& group : groups) {
      if (group.first.severity != severity) continue;
      result.push_back(group.first);
      if (group.more > 0)
        result.back().message +=
            fmt::format(" (and {} more like this, in other layers)", group.more);
    }
  }
  return result;
}

}  // namespace shardproof
