#include "io/strict_json.h"

#include <unordered_set>

#include "base/check.h"
#include "io/quote.h"

namespace shardproof {
namespace {

using nlohmann::json;

// Watches the parser's events and throws at the first one that is not allowed.
class Watcher {
 public:
  Watcher(std::string_view what, const JsonLimits& limits) : what_(what), limits_(limits) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        count_item();
        SP_VALIDATE(depth < limits_.depth, "{}: {}is nested more than {} levels deep", what_,
                    place(), limits_.depth);
        levels_.push_back({.is_array = event == Event::array_start, .keys = {}, .key = {}});
        break;
      case Event::object_end:
      case Event::array_end:
        levels_.pop_back();
        break;
      case Event::key:
        add_key(parsed.get_ref<const std::string&>());
        break;
      case Event::value:
        count_item();
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool is_array = false;
    int64_t items = 0;
    std::unordered_set<std::string> keys;
    std::string key;  // the one being read
  };

  void count_item() {
    if (levels_.empty() || !levels_.back().is_array) return;
    SP_VALIDATE(++levels_.back().items <= limits_.array_items,
                "{}: {}has an array of more than {} items", what_, place(), limits_.array_items);
  }

  void add_key(const std::string& key) {
    Level& level = levels_.back();
    level.key.clear();
    SP_VALIDATE(level.keys.insert(key).second, "{}: {}names {} twice", what_, place(), quote(key));
    level.key = key;
  }

  // "'model.norm.weight' 'shape' " : the keys that lead to what is being read.
  std::string place() const {
    std::string text;
    for (const Level& level : levels_)
      if (!level.key.empty()) text += quote(level.key) + " ";
    return text;
  }

  std::string_view what_;
  JsonLimits limits_;
  std::vector<Level> levels_;
};

}  // namespace

json parse_strict_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  // The parser takes a zero byte for the end of its input and would pass over what follows.
  const size_t zero = text.find('\0');
  SP_VALIDATE(zero == text.npos, "{}: is not JSON: zero byte at {}", what, zero);
  Watcher watcher(what, limits);
  try {
    return json::parse(text, std::ref(watcher));
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: is not JSON: {}", what, quote(error.what())));
  }
}

}  // namespace shardproof
