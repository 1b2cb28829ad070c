#include "parallel/style.h"

#include <algorithm>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {

void StyleRegistry::add(Style style) {
  std::vector<std::string> own = style.aliases;
  own.push_back(style.name);
  for (const std::string& name : own)
    SP_EXPECT(find(name) == nullptr, "the style {} is registered already", name);
  styles_.push_back(std::move(style));
}

const Style* StyleRegistry::find(const std::string& name) const {
  for (const Style& style : styles_) {
    const auto& aliases = style.aliases;
    if (style.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end())
      return &style;
  }
  return nullptr;
}

std::vector<std::string> StyleRegistry::names() const {
  std::vector<std::string> result;
  for (const Style& style : styles_) result.push_back(style.name);
  return result;
}

std::string StyleRegistry::nearest(const std::string& name) const {
  std::vector<std::string> known = names();
  for (const Style& style : styles_)
    known.insert(known.end(), style.aliases.begin(), style.aliases.end());
  return nearest_word(name, known);
}

}  // namespace shardproof
