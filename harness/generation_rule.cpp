#include "harness/generation_rule.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr int kLevel = 3;

// How many of `longest` positions do not hold the same token on both sides.
int64_t differing(const std::vector<int64_t>& ids, const std::vector<int64_t>& others) {
  const size_t both = std::min(ids.size(), others.size());
  auto count = static_cast<int64_t>(std::max(ids.size(), others.size()) - both);
  for (size_t i = 0; i < both; ++i) count += ids[i] != others[i];
  return count;
}

std::string token_at(const std::vector<int64_t>& ids, int64_t step) {
  return step < static_cast<int64_t>(ids.size()) ? fmt::to_string(ids[step]) : "none";
}

Row tokens_row(size_t index, const Continuation& run, const Continuation& truth,
               const std::vector<double>& deciding, double noise) {
  Row row{.key = {Kind::kTokens, fmt::format("prompt {}", index), 0}, .note = {}};
  row.elements = static_cast<int64_t>(std::max(run.ids.size(), truth.ids.size()));
  row.error = static_cast<double>(differing(run.ids, truth.ids));
  row.margins = run.margins;
  row.passed = true;
  const std::optional<int64_t> step = first_difference(run.ids, truth.ids);
  if (!step) return row;
  row.key.step = *step;
  row.note = fmt::format("step {}: token {} instead of {}", *step + 1, token_at(run.ids, *step),
                         token_at(truth.ids, *step));
  // Past the end of the truth nothing was close: it had ended.
  const bool known = *step < static_cast<int64_t>(deciding.size());
  if (known) row.note += fmt::format(", margin {:.2e}", deciding[*step]);
  if (noise != 0) row.note += fmt::format(", noise {:.2e}", noise);
  row.passed = known && deciding[*step] < noise;  // false for a noise that is NaN
  if (row.passed) row.allowed = static_cast<double>(row.elements - *step);
  return row;
}

Row margins_row(const std::vector<Continuation>& run, const std::vector<Continuation>& truth,
                double noise) {
  Row row{.key = {Kind::kMargins, "all prompts", 0}, .note = {}};
  for (size_t i = 0; i < run.size(); ++i)
    row.elements += first_difference(run[i].ids, truth[i].ids)
                        .value_or(static_cast<int64_t>(run[i].ids.size()));
  row.error = margin_difference(run, truth);
  row.allowed = noise;
  row.passed = row.error <= noise;
  if (row.elements == 0) row.note = "no sequence begins with the same token";
  return row;
}

}  // namespace

std::optional<int64_t> first_difference(const std::vector<int64_t>& ids,
                                        const std::vector<int64_t>& others) {
  const auto [own, other] = std::mismatch(ids.begin(), ids.end(), others.begin(), others.end());
  if (own == ids.end() && other == others.end()) return {};
  return own - ids.begin();
}

double margin_difference(const std::vector<Continuation>& run,
                         const std::vector<Continuation>& other) {
  SP_EXPECT(run.size() == other.size(), "{} sequences beside {}", run.size(), other.size());
  double squares = 0;
  int64_t steps = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    const int64_t end = first_difference(run[i].ids, other[i].ids)
                            .value_or(static_cast<int64_t>(run[i].ids.size()));
    for (int64_t step = 0; step < end; ++step)
      squares += std::pow(run[i].margins[step] - other[i].margins[step], 2);
    steps += end;
  }
  return std::sqrt(squares / static_cast<double>(steps));
}

double margin_noise(const std::vector<Continuation>& unsharded,
                    const std::vector<Continuation>& reference) {
  return kKappa * margin_difference(unsharded, reference);
}

std::vector<std::vector<double>> deciding_margins(const std::vector<Continuation>& truth,
                                                  const std::vector<Continuation>& reference) {
  SP_EXPECT(truth.size() == reference.size(), "{} sequences beside {}", truth.size(),
            reference.size());
  std::vector<std::vector<double>> margins;
  for (size_t i = 0; i < truth.size(); ++i) {
    // The step of a first difference still answers the same text.
    const auto left = first_difference(truth[i].ids, reference[i].ids);
    const int64_t last = left ? *left : static_cast<int64_t>(truth[i].ids.size());
    margins.push_back(truth[i].margins);
    for (int64_t step = 0; step <= last; ++step)
      if (step < static_cast<int64_t>(std::min(margins[i].size(), reference[i].margins.size())))
        margins[i][step] = reference[i].margins[step];
  }
  return margins;
}

std::vector<Row> judge_continuations(const std::vector<Continuation>& run,
                                     const std::vector<Continuation>& truth,
                                     const std::vector<std::vector<double>>& deciding, double noise,
                                     const std::string& dtype) {
  SP_EXPECT(run.size() == truth.size() && run.size() == deciding.size(),
            "{} sequences beside {} and margins of {}", run.size(), truth.size(), deciding.size());
  std::vector<Row> rows;
  for (size_t i = 0; i < run.size(); ++i)
    rows.push_back(tokens_row(i, run[i], truth[i], deciding[i], noise));
  if (noise != 0) rows.push_back(margins_row(run, truth, noise));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].order = static_cast<int64_t>(i);
    rows[i].level = kLevel;
    rows[i].dtype = dtype;
  }
  return rows;
}

}  // namespace shardproof
