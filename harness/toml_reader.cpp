#include "harness/toml_reader.h"

#include <cmath>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {

TomlReader::TomlReader(const toml::table& table, std::string file, std::string where)
    : table_(&table), file_(std::move(file)), where_(std::move(where)) {}

void TomlReader::fail(const std::string& key, const toml::node* at,
                      const std::string& problem) const {
  const auto line = (at != nullptr ? at->source() : table_->source()).begin.line;
  throw InputError(fmt::format("{}:{}: {}: {}", file_, line, join_name(where_, key), problem));
}

const toml::node* TomlReader::node(const std::string& key) {
  asked_.insert(key);
  return table_->get(key);
}

template <class T>
T TomlReader::value(const std::string& key, T fallback, const char* type) {
  const toml::node* found = node(key);
  if (found == nullptr) return fallback;
  // value_exact: 3.0 is no integer, "3" no number.
  const auto exact = found->value_exact<T>();
  if (!exact) fail(key, found, fmt::format("must be {}", type));
  return *exact;
}

std::string TomlReader::text(const std::string& key, std::string fallback) {
  return value<std::string>(key, std::move(fallback), "a text");
}

int64_t TomlReader::integer(const std::string& key, int64_t fallback, int64_t least) {
  const auto number = value<int64_t>(key, fallback, "a whole number");
  if (number < least)
    fail(key, table_->get(key), fmt::format("is {}: it must be at least {}", number, least));
  return number;
}

double TomlReader::number(const std::string& key, double fallback) {
  const toml::node* found = node(key);
  if (found != nullptr && found->is_integer())
    return static_cast<double>(*found->value_exact<int64_t>());
  const double number = value<double>(key, fallback, "a number");
  if (!std::isfinite(number)) fail(key, found, "must be finite");
  return number;
}

bool TomlReader::flag(const std::string& key, bool fallback) {
  return value<bool>(key, fallback, "true or false");
}

std::vector<std::string> TomlReader::texts(const std::string& key,
                                           std::vector<std::string> fallback) {
  const toml::node* found = node(key);
  if (found == nullptr) return fallback;
  if (!found->is_array()) fail(key, found, "must be a list of texts");
  std::vector<std::string> texts;
  for (const toml::node& item : *found->as_array()) {
    if (!item.is_string()) fail(key, &item, "must be a list of texts");
    texts.push_back(item.as_string()->get());
  }
  return texts;
}

TomlReader TomlReader::table(const std::string& key) {
  static const toml::table kEmpty;
  const toml::node* found = node(key);
  if (found != nullptr && !found->is_table()) fail(key, found, "must be a table");
  return {found != nullptr ? *found->as_table() : kEmpty, file_, join_name(where_, key)};
}

void TomlReader::require(const std::string& key) {
  if (table_->get(key) == nullptr) fail(key, nullptr, "is missing; every scenario must state it");
}

void TomlReader::refuse_others() const {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (asked_.contains(name)) continue;
    const std::string near = nearest_word(name, {asked_.begin(), asked_.end()});
    fail(name, &node,
         near.empty() ? "is no key of a scenario"
                      : fmt::format("is no key of a scenario; did you mean '{}'?", near));
  }
}

}  // namespace shardproof
