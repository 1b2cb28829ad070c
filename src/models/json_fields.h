// Typed reading of the keys of a config.json: what is wrong is an InputError naming origin, key and
// value. For .cpp files only: it shows the JSON library.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardproof {

class JsonFields {
 public:
  // `prefix`: of the keys in messages ("rope_scaling."). Throws InputError where `object` is none.
  JsonFields(nlohmann::json object, std::string origin, std::string prefix = "");

  // Parses the text of a config.json.
  static JsonFields parse(const std::string& text, const std::string& origin);

  // True where the key is there and not null.
  bool has(const std::string& key) const;
  // True where the key is there, be it null: a file that says null means it.
  bool mentions(const std::string& key) const;
  // Without a fallback a key that is missing (or null) is an error.
  int64_t integer(const std::string& key, std::optional<int64_t> fallback = {}) const;
  // One integer or a list of them.
  std::vector<int64_t> integers(const std::string& key) const;
  // At least 1.
  int64_t size(const std::string& key, std::optional<int64_t> fallback = {}) const;
  double number(const std::string& key, std::optional<double> fallback = {}) const;  // finite
  // Finite and above 0.
  double positive(const std::string& key, std::optional<double> fallback = {}) const;
  bool boolean(const std::string& key, std::optional<bool> fallback = {}) const;
  std::string text(const std::string& key, std::optional<std::string> fallback = {}) const;
  std::vector<std::string> texts(const std::string& key) const;  // a list
  JsonFields object(const std::string& key) const;

  // "config.json: key 'rope_scaling.factor'"
  std::string where(const std::string& key) const;

 private:
  const nlohmann::json& value(const std::string& key) const;
  std::string shown(const std::string& key) const;

  nlohmann::json object_;
  std::string origin_;
  std::string prefix_;
};

}  // namespace shardproof
