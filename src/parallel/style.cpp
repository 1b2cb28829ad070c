#include "parallel/style.h"

#include "base/check.h"
#include "base/names.h"

namespace shardproof {

void StyleRegistry::add(Style style) { styles_.push_back(std::move(style)); }

std::vector<std::string> StyleRegistry::names() const {
  std::vector<std::string> result;
  for (const Style& style : styles_) result.push_back(style.name);
  return result;
}

const Style& StyleRegistry::find(const PlanRule& rule) const {
  for (const Style& style : styles_) {
    if (style.name == rule.style) return style;
  }
  const std::string near = nearest_word(rule.style, names());
  throw InputError(fmt::format("{}rule \"{}\": unknown style \"{}\"; {}",
                               rule.origin.empty() ? "" : rule.origin + ": ", rule.pattern,
                               rule.style,
                               near.empty() ? fmt::format("known are {}", fmt::join(names(), ", "))
                                            : fmt::format("did you mean \"{}\"?", near)));
}

}  // namespace shardproof
