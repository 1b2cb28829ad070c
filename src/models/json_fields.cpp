#include "models/json_fields.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "io/quote.h"
#include "io/strict_json.h"

namespace shardproof {

JsonFields::JsonFields(nlohmann::json object, std::string origin, std::string prefix)
    : object_(std::move(object)), origin_(std::move(origin)), prefix_(std::move(prefix)) {
  SP_VALIDATE(object_.is_object(), "{}: an object of keys and values was expected", origin_);
}

JsonFields JsonFields::parse(const std::string& text, const std::string& origin) {
  return {parse_strict_json(text, origin, {.depth = 16, .array_items = 1 << 20}), origin};
}

std::string JsonFields::where(const std::string& key) const {
  return fmt::format("{}: key '{}{}'", origin_, prefix_, key);
}

bool JsonFields::has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

bool JsonFields::mentions(const std::string& key) const { return object_.contains(key); }

const nlohmann::json& JsonFields::value(const std::string& key) const {
  SP_VALIDATE(has(key), "{} is missing", where(key));
  return object_.at(key);
}

std::string JsonFields::shown(const std::string& key) const {
  // Whatever the file holds, the message stays one readable line.
  using nlohmann::json;
  return quote(value(key).dump(-1, ' ', true, json::error_handler_t::replace));
}

int64_t JsonFields::integer(const std::string& key, std::optional<int64_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const nlohmann::json& found = value(key);
  const bool fits = found.is_number_integer() &&
                    (!found.is_number_unsigned() || found.get<uint64_t>() <= uint64_t{INT64_MAX});
  SP_VALIDATE(fits, "{} must be an integer, not {}", where(key), shown(key));
  return found.get<int64_t>();
}

std::vector<int64_t> JsonFields::integers(const std::string& key) const {
  if (!value(key).is_array()) return {integer(key)};
  std::vector<int64_t> found;
  for (const nlohmann::json& item : value(key)) {
    SP_VALIDATE(item.is_number_integer(), "{} must be an integer or a list of them, not {}",
                where(key), shown(key));
    found.push_back(item.get<int64_t>());
  }
  return found;
}

int64_t JsonFields::size(const std::string& key, std::optional<int64_t> fallback) const {
  // Far above any model, and small enough that products of two do not overflow.
  constexpr int64_t kLimit = int64_t{1} << 31;
  const int64_t found = integer(key, fallback);
  SP_VALIDATE(found >= 1 && found < kLimit, "{} must be at least 1 and below 2^31, not {}",
              where(key), found);
  return found;
}

double JsonFields::number(const std::string& key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  SP_VALIDATE(value(key).is_number(), "{} must be a number, not {}", where(key), shown(key));
  const double found = value(key).get<double>();
  SP_VALIDATE(std::isfinite(found), "{} must be finite, not {}", where(key), found);
  return found;
}

double JsonFields::positive(const std::string& key, std::optional<double> fallback) const {
  if (fallback && !has(key)) return *fallback;
  const double found = number(key);
  SP_VALIDATE(found > 0, "{} must be above 0, not {}", where(key), found);
  return found;
}

bool JsonFields::boolean(const std::string& key, std::optional<bool> fallback) const {
  if (fallback && !has(key)) return *fallback;
  SP_VALIDATE(value(key).is_boolean(), "{} must be true or false, not {}", where(key), shown(key));
  return value(key).get<bool>();
}

std::string JsonFields::text(const std::string& key, std::optional<std::string> fallback) const {
  if (fallback && !has(key)) return *fallback;
  SP_VALIDATE(value(key).is_string(), "{} must be a text, not {}", where(key), shown(key));
  return value(key).get<std::string>();
}

std::vector<std::string> JsonFields::texts(const std::string& key) const {
  const nlohmann::json& list = value(key);
  const bool fits = list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& item) {
                      return item.is_string();
                    });
  SP_VALIDATE(fits, "{} must be a list of texts, not {}", where(key), shown(key));
  return list.get<std::vector<std::string>>();
}

JsonFields JsonFields::object(const std::string& key) const {
  SP_VALIDATE(value(key).is_object(), "{} must be an object, not {}", where(key), shown(key));
  return {value(key), origin_, prefix_ + key + "."};
}

}  // namespace shardproof
