#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace shardproof {
namespace {

constexpr double kExcluded = -std::numeric_limits<double>::infinity();

// exp(logit - highest): probabilities but for their sum.
std::vector<double> weights(std::span<const double> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  SP_EXPECT(std::isfinite(highest), "the highest of {} logits is {}", logits.size(), highest);
  std::vector<double> result(logits.size());
  std::transform(logits.begin(), logits.end(), result.begin(),
                 [&](double logit) { return std::exp(logit - highest); });
  return result;
}

}  // namespace

void SamplingOptions::validate() const {
  SP_VALIDATE(std::isfinite(temperature) && temperature >= 0,
              "temperature {}: it must be 0 (greedy) or above", temperature);
  SP_VALIDATE(top_k >= 0, "top_k {}: it must be 0 (all) or a number of tokens", top_k);
  SP_VALIDATE(top_p > 0 && top_p <= 1, "top_p {}: it must lie above 0, and be at most 1 (all)",
              top_p);
  SP_VALIDATE(temperature > 0 || (top_k == 0 && top_p == 1),
              "top_k {} and top_p {} go with a temperature above 0: greedy draws nothing", top_k,
              top_p);
}

int64_t greedy(std::span<const double> logits) {
  SP_EXPECT(!logits.empty(), "there are no logits to choose from");
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

double top2_margin(std::span<const double> logits) {
  const int64_t best = greedy(logits);
  double second = kExcluded;
  for (int64_t i = 0; i < static_cast<int64_t>(logits.size()); ++i) {
    if (i != best) second = std::max(second, logits[i]);
  }
  return logits[best] - second;
}

void divide_by_temperature(std::span<double> logits, double temperature) {
  SP_EXPECT(temperature > 0, "a temperature of {}", temperature);
  for (double& logit : logits) logit /= temperature;
}

void keep_top_k(std::span<double> logits, int64_t k) {
  SP_EXPECT(k > 0, "the {} highest logits", k);
  if (k >= static_cast<int64_t>(logits.size())) return;
  std::vector<double> sorted(logits.begin(), logits.end());
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double last = sorted[k - 1];
  for (double& logit : logits) {
    if (logit < last) logit = kExcluded;
  }
}

void keep_top_p(std::span<double> logits, double p) {
  SP_EXPECT(p > 0 && p <= 1, "tokens of probability {} together", p);
  const std::vector<double> weight = weights(logits);
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::vector<int64_t> ascending(logits.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](int64_t a, int64_t b) { return logits[a] < logits[b]; });
  double cumulative = 0;
  for (size_t i = 0; i + 1 < ascending.size(); ++i) {  // the most probable one always stays
    cumulative += weight[ascending[i]] / total;
    if (cumulative > 1 - p) break;
    logits[ascending[i]] = kExcluded;
  }
}

int64_t draw(std::span<const double> logits, double uniform) {
  SP_EXPECT(uniform >= 0 && uniform < 1, "a draw at {}, outside [0, 1)", uniform);
  const std::vector<double> weight = weights(logits);
  const double wanted = uniform * std::accumulate(weight.begin(), weight.end(), 0.0);
  double cumulative = 0;
  int64_t last = 0;  // with a weight
  for (int64_t i = 0; i < static_cast<int64_t>(weight.size()); ++i) {
    if (weight[i] == 0) continue;
    last = i;
    cumulative += weight[i];
    if (cumulative > wanted) break;
  }
  return last;
}

int64_t choose_token(std::span<const double> logits, const SamplingOptions& options, int64_t step,
                     int64_t sequence) {
  if (options.temperature == 0) return greedy(logits);
  std::vector<double> scores(logits.begin(), logits.end());
  divide_by_temperature(scores, options.temperature);
  if (options.top_k > 0) keep_top_k(scores, options.top_k);
  if (options.top_p < 1) keep_top_p(scores, options.top_p);
  const CounterRng random(options.seed, fmt::format("generation/{}", step));
  return draw(scores, random.uniform(static_cast<uint64_t>(sequence)));
}

}  // namespace shardproof
