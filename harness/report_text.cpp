#include "harness/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardproof {
namespace {

std::string mark(GroupStatus status) {
  switch (status) {
    case GroupStatus::kPassed:
      return "ok  ";
    case GroupStatus::kSkipped:
      return "skip";
    default:
      return "FAIL";
  }
}

std::string described(const Row& row) {
  return fmt::format(
      "{} {}{}", row.key.name, kind_name(row.key.kind),
      row.key.step > 0 && (row.key.kind == Kind::kLoss || row.key.kind == Kind::kNorm)
          ? fmt::format(" of step {}", row.key.step + 1)
          : "");
}

// float64 goes without saying.
std::string layout_and_type(const Group& group) {
  const bool plain = group.dtype.empty() || group.dtype == "float64";
  return plain ? group.layout : group.layout + " " + group.dtype;
}

std::string zeros(const Group& group) {
  const auto count =
      std::count_if(group.rows.begin(), group.rows.end(), [](const Row& r) { return r.zero; });
  return count > 0 ? fmt::format(", {} zero on both sides", count) : "";
}

bool of_tokens(const Row& row) { return row.key.kind == Kind::kTokens; }

// Of a group that passed: how many sequences and tokens are the same; below it, those that are not.
std::string generated(const Group& group) {
  int64_t sequences = 0, tokens = 0, same = 0;
  std::string differences, margins;
  for (const Row& row : group.rows) {
    if (of_tokens(row)) {
      ++sequences;
      tokens += row.elements;
      same += row.elements - static_cast<int64_t>(row.error);
      if (!row.note.empty())
        differences +=
            fmt::format("\n     differs, as rounding may: {}: {}", row.key.name, row.note);
    } else {
      margins = fmt::format(", worst {}: {:.1e} of {:.1e} ({:.2g}%)", described(row), row.error,
                            row.allowed, 100 * row.share());
    }
  }
  return fmt::format(" {:>4} sequences, {} of {} tokens the same{}  {:.1f} s{}", sequences, same,
                     tokens, margins, group.seconds, differences);
}

}  // namespace

std::string group_line(const Group& group) {
  std::string line =
      fmt::format("{} {:<18} {:<22} {:<22} vs {:<20}", mark(group.status), group.scenario,
                  group.model, layout_and_type(group), group.against);
  const bool generation =
      std::any_of(group.rows.begin(), group.rows.end(), [](const Row& r) { return of_tokens(r); });
  if (generation && group.status == GroupStatus::kPassed) {
    line += generated(group);
  } else if (const Row* most = worst(group.rows);
             most != nullptr && group.status == GroupStatus::kPassed) {
    line += fmt::format(" {:>4} tensors{}, worst {}: {:.1e} of {:.1e} ({:.2g}%)  {:.1f} s",
                        group.rows.size(), zeros(group), described(*most), most->error,
                        most->allowed, 100 * most->share(), group.seconds);
  } else if (const Row* wrong = first_wrong(group.rows); wrong != nullptr) {
    const auto count =
        std::count_if(group.rows.begin(), group.rows.end(), [](const Row& r) { return !r.passed; });
    line += fmt::format(" {} of {} {} wrong\n     first wrong: {}: error {:.1e}, allowed {:.1e}{}",
                        count, group.rows.size(), generation ? "comparisons" : "tensors",
                        described(*wrong), wrong->error, wrong->allowed,
                        wrong->note.empty() ? "" : " (" + wrong->note + ")");
  } else {
    line += fmt::format(" {}", group.message.empty() ? "nothing was compared" : group.message);
  }
  return line;
}

std::string summary_table(const Results& results, bool allow_skips) {
  struct Line {
    int64_t passed = 0, failed = 0, skipped = 0, tensors = 0;
    double share = 0, seconds = 0;
  };
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, Line> lines;
  for (const Group& group : results.groups) {
    const auto key = std::pair(group.scenario, group.model);
    if (!lines.contains(key)) order.push_back(key);
    Line& line = lines[key];
    line.passed += group.status == GroupStatus::kPassed;
    line.skipped += group.status == GroupStatus::kSkipped;
    line.failed += group.status != GroupStatus::kPassed && group.status != GroupStatus::kSkipped;
    line.tensors += static_cast<int64_t>(group.rows.size());
    line.seconds += group.seconds;
    if (const Row* most = worst(group.rows); most != nullptr && most->passed)
      line.share = std::max(line.share, most->share());
  }
  std::string text =
      fmt::format("\n{:<20} {:<24} {:>6} {:>6} {:>7} {:>8} {:>14} {:>8}\n", "scenario", "model",
                  "passed", "failed", "skipped", "tensors", "worst share", "seconds");
  for (const auto& key : order) {
    const Line& line = lines[key];
    text += fmt::format("{:<20} {:<24} {:>6} {:>6} {:>7} {:>8} {:>13.2g}% {:>8.1f}\n", key.first,
                        key.second, line.passed, line.failed, line.skipped, line.tensors,
                        100 * line.share, line.seconds);
  }
  const auto skipped =
      std::count_if(results.groups.begin(), results.groups.end(),
                    [](const Group& g) { return g.status == GroupStatus::kSkipped; });
  const bool held = results.status(allow_skips) == 0;
  text += held ? "Everything held." : "Not everything held.";
  if (skipped > 0)
    text += fmt::format(" {} comparisons were skipped{}.", skipped,
                        allow_skips ? "" : ", which counts as failure without --allow-skips");
  return text + fmt::format(" {:.0f} s\n", results.seconds);
}

}  // namespace shardproof
