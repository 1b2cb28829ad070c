#include "analysis/fit.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>

#include "base/check.h"

namespace shardproof {
namespace {

// Bytes of a unit of memory, 0 for none: "GiB", "gb", "G" = "GiB", "" = bytes.
double unit_bytes(std::string unit) {
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.empty() || unit == "b") return 1;
  const size_t power = std::string("kmgt").find(unit.front());
  const std::string rest = unit.substr(1);
  if (power == std::string::npos || (!rest.empty() && rest != "b" && rest != "ib")) return 0;
  return std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

// Whether tp leaves the last rank nothing of a parameter that it cuts: of every cut the high
// coordinates get the least.
bool leaves_empty(Module& model, const ResolvedPlan& plan) {
  const int64_t last = plan.mesh.world_size() - 1;
  const auto parameters = parameters_on(model, plan, last);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!plan.parameters[i].view_placements.empty() && parameters[i].view_elements == 0)
      return true;
  }
  return false;
}

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    found.push_back(d);
    if (d * d != number) found.push_back(number / d);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Resolved plans of one model. They differ by tp and by whether fsdp cuts at all.
class Plans {
 public:
  Plans(Module& model, const ModelPlans& plans) : model_(model), plans_(plans) {}

  // nullptr where the plan has errors or a rank is left empty.
  const ResolvedPlan* of(const DistributedConfig& config) {
    const auto key = std::pair(config.tp_size, config.fsdp_size > 1);
    auto at = resolved_.find(key);
    if (at == resolved_.end()) {
      auto plan = std::make_unique<ResolvedPlan>(
          resolve_with_findings(model_, config.mesh(), config, plans_));
      if (has_errors(plan->findings) || leaves_empty(model_, *plan)) plan.reset();
      at = resolved_.emplace(key, std::move(plan)).first;
    }
    if (at->second) at->second->mesh = config.mesh();
    return at->second.get();
  }

 private:
  Module& model_;
  const ModelPlans& plans_;
  std::map<std::pair<int64_t, bool>, std::unique_ptr<ResolvedPlan>> resolved_;
};

bool is_better(const Suggestion& a, const Suggestion& b) {
  if (a.fits() != b.fits()) return a.fits();
  if (a.fits() && a.sent != b.sent) return a.sent < b.sent;
  return a.peak() < b.peak();
}

}  // namespace

int64_t parse_bytes(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit = error == std::errc() ? text.substr(end - text.data()) : "?";
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size()
                                                                 : unit.find_first_not_of(' '));
  const double bytes = number * unit_bytes(unit);
  SP_VALIDATE(bytes >= 1 && bytes < 9e18,
              "\"{}\" is no amount of memory: write it as 40GiB, 80GB or a number of bytes", text);
  return static_cast<int64_t>(bytes);
}

std::string shown_bytes(int64_t bytes) {
  if (std::abs(bytes) < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  const char* unit = "KiB";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    value /= 1024;
    unit = next;
    if (std::abs(value) < 999.95) break;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::vector<Verdict> fits(Module& model, const ResolvedPlan& plan, int64_t available,
                          const MemoryOptions& options) {
  std::vector<Verdict> verdicts;
  for (const Phase phase : {Phase::kLoad, Phase::kGenerate, Phase::kTrain})
    verdicts.push_back({memory_of_fullest(model, plan, phase, options), available});
  return verdicts;
}

int64_t Suggestion::peak() const {
  int64_t most = 0;
  for (const Verdict& verdict : verdicts) most = std::max(most, verdict.use.total());
  return most;
}

bool Suggestion::fits() const {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& verdict) { return verdict.fits(); });
}

std::vector<Suggestion> suggest(Module& model, const DistributedConfig& config,
                                const ModelPlans& plans, int64_t ranks,
                                const SuggestOptions& options) {
  SP_VALIDATE(ranks >= 1, "layouts of {} ranks: there must be one at least", ranks);
  SP_VALIDATE(options.global_batch >= 1, "a global batch of {} rows: there must be one at least",
              options.global_batch);
  Plans resolved(model, plans);
  std::vector<Suggestion> suggestions;
  const std::vector<int64_t> sizes = divisors(ranks);
  for (const int64_t tp : sizes) {
    if (tp > options.max_tp) break;
    for (const int64_t fsdp : sizes) {
      if (ranks % (tp * fsdp) != 0) continue;
      Suggestion suggestion{.config = config};
      suggestion.config.tp_size = tp;
      suggestion.config.fsdp_size = fsdp;
      suggestion.config.dp_replicate_size = ranks / tp / fsdp;
      const ResolvedPlan* plan = resolved.of(suggestion.config);
      if (plan == nullptr) continue;
      MemoryOptions memory = options.memory;
      const int64_t data = ranks / tp;
      memory.train.batch = (options.global_batch + data - 1) / data;
      for (const Phase phase : options.phases)
        suggestion.verdicts.push_back(
            {memory_of_fullest(model, *plan, phase, memory), options.available});
      suggestion.sent = total_sent(
          traffic_of(model, *plan, memory.train, 0, {.dtype = options.dtype, .train_step = true})
              .records);
      suggestions.push_back(std::move(suggestion));
    }
  }
  std::stable_sort(suggestions.begin(), suggestions.end(), is_better);
  return suggestions;
}

}  // namespace shardproof
