#include <algorithm>

#include "analysis/elements.h"
#include "analysis/fold.h"
#include "base/check.h"
#include "harness/plan_report.h"

namespace shardproof {
namespace {

// Columns as wide as their cells, the first `left` of them to the left, two spaces between.
class Table {
 public:
  explicit Table(size_t left) : left_(left) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print(std::ostream& out) const {
    std::vector<size_t> widths;
    for (const auto& cells : rows_) {
      widths.resize(std::max(widths.size(), cells.size()));
      for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
    }
    for (const auto& cells : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < cells.size(); ++i)
        line += i < left_ ? fmt::format(" {:<{}} ", cells[i], widths[i])
                          : fmt::format(" {:>{}} ", cells[i], widths[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << '\n';
    }
  }

 private:
  size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

std::string shown_shape(const std::vector<int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

// "19,795"
std::string shown_count(int64_t count) {
  std::string text = std::to_string(count);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

// "rank 13 (fsdp 3, tp 1)"; with ep, "(fsdp 3, tp 1, ep 1)"
std::string shown_rank(const MeshShape& mesh, int64_t rank) {
  std::vector<std::string> places;
  for (const char* axis : {"dp_replicate", "fsdp", "tp", "ep"})
    if (mesh.size(axis) > 1)
      places.push_back(fmt::format("{} {}", axis, mesh.coordinate(rank, axis)));
  return places.empty() ? fmt::format("rank {}", rank)
                        : fmt::format("rank {} ({})", rank, fmt::join(places, ", "));
}

// Values like 'model.layers.0.mlp "output"', those of alike layers as one.
std::vector<std::string> folded_values(const std::vector<std::string>& values) {
  std::vector<std::pair<std::string, std::string>> order;  // pattern of the path, the rest
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> paths;
  for (const std::string& value : values) {
    const size_t space = std::min(value.find(' '), value.size());
    const std::string path = value.substr(0, space);
    const std::pair key(starred(path).pattern, value.substr(space));
    if (!paths.contains(key)) order.push_back(key);
    paths[key].push_back(path);
  }
  std::vector<std::string> lines;
  for (const auto& key : order) lines.push_back(folded(paths.at(key)) + key.second);
  return lines;
}

// Errors a paragraph each; notes a line each, where the plan can be used at all.
void print_findings(const PlanReport& report, std::ostream& out) {
  size_t errors = 0;
  for (const Finding& finding : report.findings) {
    if (finding.severity != Finding::Severity::kError) continue;
    ++errors;
    out << fmt::format("\nerror [{}]\n  {}\n", finding.check, finding.message);
  }
  const size_t notes = report.findings.size() - errors;
  if (report.findings.empty()) out << "\nNothing to say against this plan.\n";
  if (errors > 0)
    out << fmt::format(
        "\n{} error{}{}.\n", errors, errors == 1 ? "" : "s",
        report.broken && notes > 0 ? fmt::format(", {} notes not shown", notes) : "");
  if (report.broken) return;
  if (notes > 0) out << '\n';
  for (const Finding& finding : report.findings)
    if (finding.severity == Finding::Severity::kNote)
      out << fmt::format("note [{}] {}\n", finding.check, finding.message);
  if (!report.not_checked.empty()) out << '\n';
  for (const std::string& check : report.not_checked) out << "not checked: " << check << '\n';
}

void print_parameters(const PlanReport& report, std::ostream& out) {
  out << "\nParameters, what each rank keeps of them\n";
  std::vector<std::string> named_ranks;
  for (const int64_t rank : report.ranks) named_ranks.push_back(shown_rank(report.mesh, rank));
  Table table(3);
  std::vector<std::string> head = {"", "whole", "placement"};
  for (const int64_t rank : report.ranks) head.push_back(fmt::format("rank {}", rank));
  head.push_back(fmt::format("bytes, rank {}", report.ranks.front()));
  table.row(std::move(head));
  for (const ParameterRow& row : report.parameters) {
    std::vector<std::string> cells = {row.name, shown_shape(row.shape),
                                      row.placement == "R" ? "whole" : row.placement};
    for (const auto& local : row.local) cells.push_back(shown_shape(local.shape));
    cells.push_back(shown_bytes(row.local.front().bytes) +
                    (row.names.size() > 1 ? fmt::format(" in {}", row.names.size()) : ""));
    table.row(std::move(cells));
  }
  table.print(out);
  out << fmt::format("  {}.\n", fmt::join(named_ranks, "; "));
  if (report.mesh.world_size() > 1)
    out << "  tp S(0): cut over the ranks of axis tp along dim 0, the outputs of a Linear (1: its "
           "inputs);\n  fsdp S(0): what is left is cut over axis fsdp; whole: every rank has "
           "all of it.\n";
  const auto shows = [&](const std::string& axis) {
    return std::any_of(report.parameters.begin(), report.parameters.end(),
                       [&](const ParameterRow& row) {
                         return row.placement.starts_with(axis) ||
                                row.placement.find(", " + axis) != std::string::npos;
                       });
  };
  if (shows("ep "))
    out << "  ep S(0): whole experts, dealt over the ranks of axis ep, which is tp and the inner "
           "part of fsdp.\n";
  if (shows("efsdp "))
    out << "  efsdp S(0): what is left of experts is cut over efsdp, the part of fsdp that ep "
           "leaves.\n";
}

void print_totals(const PlanReport& report, std::ostream& out) {
  out << "\nWhat training keeps on a rank (moments: two of each parameter, as AdamW has them)\n";
  Table table(1);
  table.row({"", "parameters", "gradients", "moments", "together"});
  const auto row = [&](std::string which, const RankState& state) {
    table.row({std::move(which), shown_bytes(state.parameters), shown_bytes(state.gradients),
               shown_bytes(state.moments), shown_bytes(state.total())});
  };
  const RankState& fullest = report.state.fullest;
  const RankState& emptiest = report.state.emptiest;
  if (fullest.total() == emptiest.total()) {
    row("every rank", fullest);
  } else {
    row("fullest, " + shown_rank(report.mesh, fullest.rank), fullest);
    row("emptiest, " + shown_rank(report.mesh, emptiest.rank), emptiest);
  }
  table.print(out);
}

// The communicator of a record as layouts name it: "fsdp" for "efsdp*ep_fsdp", "fsdp/ep" where both
// are the same ranks.
std::string shown_axis(const MeshShape& mesh, const std::string& communicator) {
  std::vector<std::string> names;
  for (const char* axis : {"fsdp", "ep"})
    if (mesh.size(axis) > 1 && communicator_name(mesh, axis) == communicator)
      names.emplace_back(axis);
  return names.empty() ? communicator : fmt::format("{}", fmt::join(names, "/"));
}

void print_traffic(const TrafficReport& report, const MeshShape& mesh, std::ostream& out) {
  out << fmt::format(
      "\nWhat one forward and backward send: {} row{} of {} tokens on each data rank, {}\n",
      report.batch.batch, report.batch.batch == 1 ? "" : "s", report.batch.length,
      shown_rank(mesh, report.rank));
  const auto sums = sums_of(report.traffic.records);
  if (sums.empty()) {
    out << "  nothing\n";
  } else {
    Table table(2);
    table.row({"axis", "operation", "ranks", "calls", "bytes handed in", "bytes sent"});
    for (const TrafficSum& sum : sums)
      table.row({shown_axis(mesh, sum.axis), sum.operation, std::to_string(sum.ranks),
                 std::to_string(sum.calls), shown_bytes(sum.bytes), shown_bytes(sum.sent)});
    table.row({"all", "", "", "", "", shown_bytes(total_sent(report.traffic.records))});
    table.print(out);
  }
  if (!report.traffic.routed.empty()) {
    const RoutedRows& rows = report.traffic.routed.front();
    out << fmt::format(
        "  What experts send depends on the routing: of each layer {} rows are counted, as many "
        "for "
        "every expert;\n  it may be {} to {}.\n",
        rows.balanced, rows.least, rows.most);
  }
  for (const std::string& value : folded_values(report.traffic.unknown))
    out << "  not counted, its width is not known: " << value << '\n';
}

void print_memory(const std::vector<Verdict>& verdicts, const MeshShape& mesh, std::ostream& out) {
  out << fmt::format("\nDoes it fit into {} a rank?\n", shown_bytes(verdicts.front().available));
  Table table(3);
  table.row({"", "", "fullest", "parameters", "gradients", "moments", "gathered", "buffers",
             "activations", "cache", "together"});
  for (const Verdict& verdict : verdicts) {
    const MemoryUse& use = verdict.use;
    table.row({to_string(use.phase),
               verdict.fits()
                   ? fmt::format("fits, {} left", shown_bytes(verdict.margin()))
                   : fmt::format("does not fit, {} too much", shown_bytes(-verdict.margin())),
               shown_rank(mesh, use.rank), shown_bytes(use.parameters), shown_bytes(use.gradients),
               shown_bytes(use.moments), shown_bytes(use.gathered), shown_bytes(use.buffers),
               shown_bytes(use.activations), shown_bytes(use.cache), shown_bytes(use.total())});
  }
  table.print(out);
  out << "  Activations and buffers are estimates; libraries and the allocator come on top.\n";
}

void print_suggestions(const std::vector<Suggestion>& suggestions, std::ostream& out) {
  out << "\nLayouts, best first\n";
  if (suggestions.empty()) {
    out << "  none is possible\n";
    return;
  }
  Table table(2);
  table.row({"layout", "", "peak of a rank", "sent in a step"});
  for (const Suggestion& suggestion : suggestions)
    table.row({suggestion.config.layout(), suggestion.fits() ? "fits" : "does not fit",
               shown_bytes(suggestion.peak()), shown_bytes(suggestion.sent)});
  table.print(out);
}

}  // namespace

void print_text(const PlanReport& report, std::ostream& out) {
  const int64_t ranks = report.mesh.world_size();
  out << fmt::format("{}: {} parameters, {}, on {} ({} rank{})\n", report.model,
                     shown_count(report.state.elements), report.dtype, report.layout, ranks,
                     ranks == 1 ? "" : "s");
  print_findings(report, out);
  if (report.broken) {
    out << "Correct the rules above; then this command shows what the plan makes of the model.\n";
    return;
  }
  print_parameters(report, out);
  print_totals(report, out);
  if (report.traffic) print_traffic(*report.traffic, report.mesh, out);
  if (!report.memory.empty()) print_memory(report.memory, report.mesh, out);
  if (report.suggestions) print_suggestions(*report.suggestions, out);
}

}  // namespace shardproof
