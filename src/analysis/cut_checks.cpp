#include "analysis/cut_checks.h"

#include <algorithm>
#include <set>

#include "analysis/fold.h"
#include "base/check.h"

namespace shardproof {
namespace {

// The ranks of an axis in runs of equal sizes: "ranks 0..1: 34, rank 2: 33".
std::string shown_sizes(const std::vector<int64_t>& sizes) {
  std::vector<std::string> runs;
  const auto count = static_cast<int64_t>(sizes.size());
  for (int64_t first = 0; first < count;) {
    int64_t last = first;
    while (last + 1 < count && sizes[last + 1] == sizes[first]) ++last;
    runs.push_back(first == last ? fmt::format("rank {}: {}", first, sizes[first])
                                 : fmt::format("ranks {}..{}: {}", first, last, sizes[first]));
    first = last + 1;
  }
  constexpr size_t kShown = 6;
  if (runs.size() > kShown)
    return fmt::format("{} to {}", *std::min_element(sizes.begin(), sizes.end()),
                       *std::max_element(sizes.begin(), sizes.end()));
  return fmt::format("{}", fmt::join(runs, ", "));
}

struct OneSection {
  const ResolvedParameter& parameter;
  Section section;
  int64_t dim = 0;
  int64_t index = 0;
  int64_t sections = 1;
};

void check(const OneSection& one, int64_t ranks, Findings& findings) {
  const auto& [parameter, section, dim, index, sections] = one;
  const int64_t block = block_size(section, ranks);
  std::vector<int64_t> sizes;
  std::vector<int64_t> idle;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    sizes.push_back(total_size(cut_intervals({{section}}, section.width, ranks, rank)));
    if (sizes.back() == 0) idle.push_back(rank);
  }
  const int64_t units = (section.width + section.unit - 1) / section.unit;
  const std::string part =
      sections > 1 ? fmt::format(" (section {} of {})", index + 1, sections) : "";
  const std::string what =
      section.unit == 1
          ? fmt::format("dim {} of {}{}, {} wide,", dim, parameter.name, part, section.width)
          : fmt::format("dim {} of {}{}, {} units of {},", dim, parameter.name, part, units,
                        section.unit);
  if (block > 1) {
    const std::string how =
        section.spread == Spread::kCopies
            ? fmt::format(
                  "each is held as copies by {} ranks side by side, and their gradients "
                  "are summed",
                  block)
            : fmt::format("{} ranks side by side share each by parts of {} ({})", block,
                          section.sub_unit, shown_sizes(sizes));
    Finding finding =
        wrong_rule("copies", parameter.rule, parameter.name,
                   fmt::format("cuts {} on {} {} ranks: {}", what, ranks, parameter.axis, how));
    finding.severity = Finding::Severity::kNote;
    findings.push_back(std::move(finding));
  }
  if (!idle.empty()) {
    findings.push_back(about_rule(
        "cut", parameter.rule, parameter.name,
        fmt::format("cuts {} on {} {} ranks: {} rank{} own{} nothing and idle{} there ({})", what,
                    ranks, parameter.axis, idle.size(), idle.size() == 1 ? "" : "s",
                    idle.size() == 1 ? "s" : "", idle.size() == 1 ? "s" : "", shown_sizes(sizes))));
  } else if (block == 1 && units % ranks != 0) {
    Finding finding =
        wrong_rule("cut", parameter.rule, parameter.name,
                   fmt::format("cuts {} on {} {} ranks, which do not divide it evenly ({})", what,
                               ranks, parameter.axis, shown_sizes(sizes)));
    finding.severity = Finding::Severity::kNote;
    findings.push_back(std::move(finding));
  }
}

}  // namespace

Findings uneven_cuts(Module& model, const ResolvedPlan& plan) {
  Findings findings;
  std::map<std::string, ParamPtr> parameters;
  for (const ParamPtr& parameter : model.all_parameters())
    parameters[parameter->name()] = parameter;
  // A bias is cut as its weight, and layers are cut alike.
  std::set<std::tuple<std::string, std::string, int64_t, int64_t, int64_t>> said;
  for (const ResolvedParameter& parameter : plan.parameters) {
    const Placement& placement = parameter.edge.inside;
    const int64_t ranks = plan.mesh.size(parameter.axis);
    if (!placement.is_shard() || ranks == 1) continue;
    const auto& sections = placement.cut.sections;
    for (size_t i = 0; i < sections.size(); ++i) {
      const Section& section = sections[i];
      if (!said.emplace(parameter.rule.pattern, parameter.rule.style, section.width, section.unit,
                        static_cast<int64_t>(i))
               .second)
        continue;
      check({parameter, section, placement.dim, static_cast<int64_t>(i),
             static_cast<int64_t>(sections.size())},
            ranks, findings);
    }
  }
  return findings;
}

}  // namespace shardproof
