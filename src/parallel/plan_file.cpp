#include "parallel/plan_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/names.h"
#include "io/quote.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

const std::vector<std::string> kTables = {"tp_plan", "sp_plan", "fsdp_plan", "ep_plan"};

[[noreturn]] void fail(const std::string& file, int64_t line, const std::string& problem) {
  throw InputError(fmt::format("{}:{}: {}", file, line, problem));
}

// What both formats come to: rules as they are read, in order.
class Builder {
 public:
  explicit Builder(std::string file) : file_(std::move(file)) {}

  void open_table(const std::string& name, int64_t line) {
    if (std::find(kTables.begin(), kTables.end(), name) == kTables.end()) {
      const std::string near = nearest_word(name, kTables);
      fail(file_, line,
           fmt::format("{} is a table: those of a plan are {}{}; a pattern with dots in it is "
                       "written in quotes",
                       quote(name), fmt::join(kTables, ", "),
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
    }
    refuse_both(line, !rules_.empty());
    if (tables_.contains(name)) fail(file_, line, fmt::format("{} is given twice", quote(name)));
    tables_[name] = {};
    table_ = name;
  }
  void close_table() { table_.clear(); }
  bool in_table() const { return !table_.empty(); }

  void rule(const std::string& pattern, std::string style, int64_t line) {
    if (!in_table()) refuse_both(line, !tables_.empty());
    Plan& rules = in_table() ? tables_[table_] : rules_;
    for (const PlanRule& other : rules) {
      if (other.pattern == pattern)
        fail(file_, line,
             fmt::format("the pattern {} is given twice, first at {}", quote(pattern),
                         other.origin));
    }
    rules.push_back({pattern, std::move(style), fmt::format("{}:{}", file_, line)});
  }
  [[noreturn]] void no_style(const std::string& pattern, int64_t line, const std::string& what) {
    fail(file_, line,
         fmt::format("the style of {} is {}: it must be a string", quote(pattern), what));
  }

  bool empty() const { return rules_.empty() && tables_.empty(); }
  PlanFile finish() {
    PlanFile plans;
    if (!rules_.empty() || tables_.empty()) plans.tp_plan = rules_;
    const auto table = [&](const char* name, std::optional<Plan>& plan) {
      if (const auto found = tables_.find(name); found != tables_.end()) plan = found->second;
    };
    table("tp_plan", plans.tp_plan);
    table("sp_plan", plans.sp_plan);
    table("fsdp_plan", plans.fsdp_plan);
    table("ep_plan", plans.ep_plan);
    return plans;
  }
  const std::string& file() const { return file_; }

 private:
  void refuse_both(int64_t line, bool both) const {
    if (both)
      fail(file_, line, "rules stand at the top and in tables: put those at the top into tp_plan");
  }

  std::string file_;
  Plan rules_;
  std::map<std::string, Plan> tables_;
  std::string table_;  // "" = the top
};

void read_toml(std::string_view text, Builder& builder) {
  toml::table root;
  try {
    root = toml::parse(text, builder.file());
  } catch (const toml::parse_error& error) {
    fail(builder.file(), error.source().begin.line, std::string(error.description()));
  }
  // toml++ keeps keys sorted; rules hold in the order of the file.
  struct Item {
    const toml::key* key;
    const toml::node* value;
  };
  const auto in_order = [](const toml::table& table) {
    std::vector<Item> items;
    for (const auto& [key, value] : table) items.push_back({&key, &value});
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      const auto& first = a.key->source().begin;
      const auto& second = b.key->source().begin;
      return std::pair(first.line, first.column) < std::pair(second.line, second.column);
    });
    return items;
  };
  const auto rule = [&](const Item& item) {
    const std::string pattern(item.key->str());
    const auto line = static_cast<int64_t>(item.key->source().begin.line);
    const auto style = item.value->value_exact<std::string>();
    if (!style) {
      std::ostringstream type;
      type << item.value->type();
      builder.no_style(pattern, line, "of type " + type.str());
    }
    builder.rule(pattern, *style, line);
  };
  for (const Item& item : in_order(root)) {
    const toml::table* table = item.value->as_table();
    if (table == nullptr) {
      rule(item);
      continue;
    }
    builder.open_table(std::string(item.key->str()),
                       static_cast<int64_t>(item.key->source().begin.line));
    for (const Item& inner : in_order(*table)) rule(inner);
    builder.close_table();
  }
}

// Characters of a text, which count the lines that were read. The parser reads no further than the
// token that it reports.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, int64_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int64_t* line_;
};

class JsonEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(Builder& builder, const int64_t& line) : builder_(builder), line_(line) {}

  bool key(string_t& name) override {
    key_ = name;
    key_line_ = line_;
    return true;
  }
  bool string(string_t& style) override {
    if (!key_) return top("a string");
    builder_.rule(*key_, style, key_line_);
    return true;
  }
  bool null() override {
    if (!key_) return top("null");
    builder_.rule(*key_, "", key_line_);
    return true;
  }
  bool start_object(std::size_t) override {
    if (std::exchange(started_, true)) {
      if (builder_.in_table()) builder_.no_style(*key_, key_line_, "an object");
      builder_.open_table(*key_, key_line_);
    }
    return true;
  }
  bool end_object() override {
    builder_.close_table();
    return true;
  }
  bool boolean(bool) override { return other("true or false"); }
  bool number_integer(number_integer_t) override { return other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a number"); }
  bool binary(binary_t&) override { return other("binary"); }
  bool start_array(std::size_t) override { return other("a list"); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    fail(builder_.file(), line_, fmt::format("not JSON: {}", e.what()));
  }

 private:
  bool top(const std::string& what) {
    fail(builder_.file(), line_,
         fmt::format("the file holds {}, not an object of pattern: style", what));
  }
  bool other(const std::string& what) {
    if (!key_) return top(what);
    builder_.no_style(*key_, key_line_, what);
  }

  Builder& builder_;
  const int64_t& line_;
  std::optional<std::string> key_;
  int64_t key_line_ = 1;
  bool started_ = false;
};

void read_json(std::string_view text, Builder& builder) {
  int64_t line = 1;
  JsonEvents events(builder, line);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &line),
                            CountingIterator(text.data() + text.size(), &line), &events);
}

}  // namespace

PlanFile parse_plan(std::string_view text, const std::string& file, PlanFormat format) {
  Builder builder(file);
  if (format == PlanFormat::kJson) {
    read_json(text, builder);
  } else {
    read_toml(text, builder);
    if (builder.empty())
      fail(file, 1,
           "the file holds no rule; an empty table tp_plan takes all of the model's own away");
  }
  return builder.finish();
}

PlanFile read_plan_file(const std::filesystem::path& path) {
  return parse_plan(read_text_file(path), path.string(),
                    path.extension() == ".json" ? PlanFormat::kJson : PlanFormat::kToml);
}

void set_plans(DistributedConfig& config, const PlanFile& plans) {
  if (plans.tp_plan) config.tp_plan = plans.tp_plan;
  if (plans.sp_plan) config.sp_plan = plans.sp_plan;
  if (plans.fsdp_plan) config.fsdp_plan = plans.fsdp_plan;
  if (plans.ep_plan) config.ep_plan = plans.ep_plan;
}

}  // namespace shardproof
