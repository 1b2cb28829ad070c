#include "checkpoint/choose_form.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/names.h"
#include "io/quote.h"

namespace shardproof {
namespace {

// What the `*`s of `pattern` stand for in `name`, which it matches.
std::vector<std::string> numbers_in(const std::string& pattern, const std::string& name) {
  const std::vector<std::string> wanted = split(pattern, '.');
  const std::vector<std::string> given = split(name, '.');
  std::vector<std::string> numbers;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == "*") numbers.push_back(given[i]);
  return numbers;
}

std::vector<BoundWeight> forms_of(const std::string& name, const Parameter& parameter,
                                  const WeightMap& map) {
  const auto rule = std::ranges::find_if(map.rules, [&](const WeightRule& candidate) {
    return pattern_matches(candidate.parameter, name);
  });
  if (rule == map.rules.end()) return {bind_weight(weight::tensor(name), {}, parameter.shape())};
  SP_EXPECT(!rule->forms.empty(), "the weight rule for '{}' has no forms", rule->parameter);
  std::vector<BoundWeight> forms;
  for (const WeightSource& source : rule->forms)
    forms.push_back(bind_weight(source, numbers_in(rule->parameter, name), parameter.shape()));
  return forms;
}

std::vector<std::string> missing_tensors(const BoundWeight& form, const CheckpointFiles& files) {
  std::vector<std::string> names = tensor_names(form);
  std::erase_if(names, [&](const std::string& name) { return files.contains(name); });
  return names;
}

// "'a', 'b', 'c' and 4 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) shown.push_back(quote(names[i]));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// The form of which there is something, or the first tensor of each.
[[noreturn]] void refuse(const Parameter& parameter, const CheckpointFiles& files,
                         const std::vector<BoundWeight>& forms) {
  std::vector<std::string> firsts;
  for (const BoundWeight& form : forms) {
    const std::vector<std::string> missing = missing_tensors(form, files);
    const std::vector<std::string> names = tensor_names(form);
    if (missing.size() < names.size()) {
      const auto present = std::ranges::find_if(
          names, [&](const std::string& name) { return files.contains(name); });
      throw InputError(fmt::format(
          "{}: of what the parameter '{}' is made of there is the tensor {}, but not {}; complete "
          "the checkpoint",
          files.path().string(), parameter.name(), quote(*present), listed(missing)));
    }
    firsts.push_back(names.front());
  }
  throw InputError(fmt::format("{}: there is no tensor '{}', of shape [{}], that the model needs",
                               files.path().string(), fmt::join(firsts, "' or '"),
                               fmt::join(parameter.shape(), ", ")));
}

}  // namespace

std::vector<BoundWeight> found_forms(const Parameter& parameter, const CheckpointFiles& files,
                                     const WeightMap& map) {
  std::vector<BoundWeight> found, tried;
  for (const std::string& name : parameter.names()) {
    for (BoundWeight& form : forms_of(name, parameter, map)) {
      if (missing_tensors(form, files).empty()) {
        found.push_back(std::move(form));
        break;
      }
      tried.push_back(std::move(form));
    }
  }
  if (found.empty()) refuse(parameter, files, tried);
  return found;
}

bool is_ignored(const WeightMap& map, const std::string& tensor) {
  constexpr std::string_view kAllBelow = ".**";
  return std::ranges::any_of(map.ignored, [&](const std::string& pattern) {
    if (!pattern.ends_with(kAllBelow)) return pattern_matches(pattern, tensor);
    // As many components as stand before the `**`.
    const std::string above = pattern.substr(0, pattern.size() - kAllBelow.size());
    std::vector<std::string> parts = split(tensor, '.');
    const size_t depth = split(above, '.').size();
    if (parts.size() <= depth) return false;
    parts.resize(depth);
    return pattern_matches(above, fmt::format("{}", fmt::join(parts, ".")));
  });
}

}  // namespace shardproof
