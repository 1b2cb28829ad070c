// A table of a TOML file, read strictly: every key is asked for by name and type, and one that
// nobody asked for is an error. For .cpp files of scenario reading only: toml++ is slow to parse.
#pragma once

#include <toml++/toml.h>
#include <set>
#include <string>
#include <vector>

namespace shardproof {

class TomlReader {
 public:
  // `file` names it in messages; `where` is the table's own key, "" for the file's table.
  TomlReader(const toml::table& table, std::string file, std::string where = "");

  // The value of a key, or `fallback` where there is none. Throws InputError "file:line: key: ...".
  std::string text(const std::string& key, std::string fallback);
  int64_t integer(const std::string& key, int64_t fallback, int64_t least);
  double number(const std::string& key, double fallback);
  bool flag(const std::string& key, bool fallback);
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> fallback);
  // nullptr where there is none.
  const toml::node* node(const std::string& key);
  TomlReader table(const std::string& key);

  void require(const std::string& key);
  // Throws for a key that was never asked for.
  void refuse_others() const;
  [[noreturn]] void fail(const std::string& key, const toml::node* at,
                         const std::string& problem) const;

 private:
  template <class T>
  T value(const std::string& key, T fallback, const char* type);

  const toml::table* table_;
  std::string file_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace shardproof
