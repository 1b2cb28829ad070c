#include "analysis/traffic.h"

#include <algorithm>
#include <map>

#include "analysis/elements.h"
#include "analysis/unit_traffic.h"
#include "analysis/values.h"
#include "base/check.h"

namespace shardproof {
namespace {

class Predictor {
 public:
  Predictor(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
            const TrafficOptions& options)
      : model_(model), plan_(plan), batch_(batch), rank_(rank), options_(options), values_(model) {
    for (const ResolvedModule& module : plan.modules) ruled_[module.path] = &module;
    visit(model_, "");
  }

  Traffic predict() {
    for (Record& record : unit_traffic(model_, plan_, rank_, options_.dtype))
      traffic_.records.push_back(std::move(record));
    if (options_.loss) loss();
    if (options_.train_step) train_step();
    return std::move(traffic_);
  }

 private:
  // Parents first and siblings in order, so that the first of those that share a value is seen
  // first.
  void visit(Module& module, const std::string& parent) {
    if (const auto rule = ruled_.find(module.path()); rule != ruled_.end()) {
      for (const ResolvedPort& port : rule->second->inputs) input(*rule->second, port, parent);
      for (const ResolvedPort& port : rule->second->outputs) output(*rule->second, port);
      if (rule->second->dispatches) dispatch(module);
    }
    for (const auto& [name, child] : module.children()) visit(*child, module.path());
  }

  void input(const ResolvedModule& module, const ResolvedPort& port, const std::string& parent) {
    if (port.edge.is_identity()) return;
    const std::string source = values_.source(module.path, port.name);
    if (!source.empty()) {
      auto& seen = shared_[{parent, source}];
      if (std::find(seen.begin(), seen.end(), port.edge) != seen.end()) return;
      seen.push_back(port.edge);
    }
    const Edge& e = port.edge;
    convert(module, port, true, e.outside, e.inside, e.grad_inside, e.grad_outside);
  }

  void output(const ResolvedModule& module, const ResolvedPort& port) {
    const Edge& e = port.edge;
    convert(module, port, false, e.inside, e.outside, e.grad_outside, e.grad_inside);
  }

  void convert(const ResolvedModule& module, const ResolvedPort& port, bool is_input,
               const Placement& from, const Placement& to, const Placement& grad_from,
               const Placement& grad_to) {
    if (port.edge.is_identity() || plan_.mesh.size(port.axis) == 1) return;
    const auto width = values_.width(module.path, port.name, is_input);
    if (!width) {
      traffic_.unknown.push_back(fmt::format("{} \"{}\"", module.path, port.name));
      return;
    }
    const std::vector<int64_t> shape = {batch_.batch, batch_.length, *width};
    send(module.path, port, "forward", shape, from, to);
    if (values_.has_grad(module.path, port.name, is_input))
      send(module.path, port, "backward", shape, grad_from, grad_to);
  }

  void send(const std::string& path, const ResolvedPort& port, const char* phase,
            const std::vector<int64_t>& shape, Placement from, Placement to) {
    for (Placement* placement : {&from, &to})
      if (is_cut_by_tokens(*placement)) placement->cut = Cut::plain(batch_.length);
    const int64_t size = plan_.mesh.size(port.axis);
    const Operation operation = plan_conversion(from, to, size);
    if (!communicates(operation)) return;
    const bool integer = values_.is_integer(path, port.name, true);
    add(recorded_name(operation), port.axis, size, {path, port.name, phase},
        integer ? at::kLong : options_.dtype,
        elements_handed_in(shape, from, to, size, plan_.mesh.coordinate(rank_, port.axis)));
  }

  // Of parallel/all_to_all_dispatcher.h: what a rank sends of its own tokens is known, what it
  // sends back depends on the routing.
  void dispatch(const Module& module) {
    const auto top_k = values_.width(module.path(), "top_k_index", true);
    const auto hidden = values_.width(module.path(), "hidden_states", true);
    const Parameter* stacked = nullptr;
    for (const auto& [name, parameter] : module.parameters())
      if (plan_.parameter(parameter->name()).axis == "ep") stacked = parameter.get();
    if (!top_k || !hidden || stacked == nullptr) {
      traffic_.unknown.push_back(fmt::format("{} \"rows\"", module.path()));
      return;
    }
    const MeshShape& mesh = plan_.mesh;
    const int64_t ranks = mesh.size("ep");
    const int64_t experts = stacked->shape()[0];
    const int64_t own =
        total_size(cut_intervals(stacked->cut(0), experts, ranks, mesh.coordinate(rank_, "ep")));
    const int64_t tokens =
        batch_.batch *
        total_size(cut_intervals({}, batch_.length, mesh.size("tp"), mesh.coordinate(rank_, "tp")));
    const int64_t routes = tokens * *top_k;
    const int64_t all_tokens = batch_.tokens() * (ranks / mesh.size("tp"));
    RoutedRows rows{module.path()};
    rows.least = all_tokens * std::max<int64_t>(0, *top_k - (experts - own));
    rows.balanced = all_tokens * *top_k * own / experts;
    rows.most = all_tokens * std::min(*top_k, own);
    const auto known = options_.arriving.find(module.path());
    const bool is_known = known != options_.arriving.end();
    const int64_t arriving = is_known ? known->second : rows.balanced;
    if (!is_known) traffic_.routed.push_back(rows);
    const auto send = [&](const char* value, const char* phase, at::ScalarType type, int64_t rows,
                          int64_t width) {
      add("all_to_all", "ep", ranks, {module.path(), value, phase}, type, rows * width);
    };
    send("counts", "forward", at::kLong, experts, 1);
    send("rows", "forward", options_.dtype, routes, *hidden);
    send("results", "forward", options_.dtype, arriving, *hidden);
    send("results", "backward", options_.dtype, routes, *hidden);
    send("rows", "backward", options_.dtype, arriving, *hidden);
  }

  // Of parallel/loss.h, where the logits are cut by vocabulary.
  void loss() {
    const int64_t size = plan_.mesh.size("tp");
    if (size == 1 || !plan_.output("", "logits").is_shard()) return;
    const auto type = options_.dtype == at::kDouble ? at::kDouble : at::kFloat;
    const int64_t sums = options_.smoothing ? 3 : 2;
    for (const int64_t elements : {batch_.tokens(), sums * batch_.tokens()})
      add("all_reduce", "tp", size, {"", "loss", "forward"}, type, elements);
  }

  // Of train/trainer.h.
  void train_step() {
    const std::vector<std::string> data = plan_.mesh.joined({"dp_replicate", "fsdp"});
    const int64_t data_size = plan_.mesh.size(data);
    if (data_size > 1) {
      const std::string name = fmt::format("{}", fmt::join(data, "*"));
      for (const char* what : {"valid_tokens", "loss"})
        add("all_reduce", name, data_size, {"", what, "forward"}, at::kDouble, 1);
    }
    if (plan_.mesh.world_size() > 1)
      add("all_reduce", "world", plan_.mesh.world_size(), {"", "grad_norm", "step"}, at::kDouble,
          1);
  }

  void add(std::string operation, const std::string& axis, int64_t ranks, const Site& site,
           at::ScalarType dtype, int64_t elements) {
    traffic_.records.push_back(
        record_of(plan_.mesh, std::move(operation), axis, ranks, site, dtype, elements));
  }

  Module& model_;
  const ResolvedPlan& plan_;
  BatchShape batch_;
  int64_t rank_;
  TrafficOptions options_;
  Values values_;
  Traffic traffic_;
  std::map<std::string, const ResolvedModule*> ruled_;
  std::map<std::pair<std::string, std::string>, std::vector<Edge>> shared_;  // by parent, source
};

}  // namespace

Traffic traffic_of(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
                   const TrafficOptions& options) {
  return Predictor(model, plan, batch, rank, options).predict();
}

int64_t sent_bytes(const Record& record) {
  const int64_t n = std::max(record.ranks, 1);
  if (record.operation == "all_reduce") return 2 * (n - 1) * record.bytes / n;
  if (record.operation == "reduce_scatter" || record.operation == "all_to_all")
    return (n - 1) * record.bytes / n;
  if (record.operation == "all_gather") return (n - 1) * record.bytes;
  return record.bytes;
}

std::vector<TrafficSum> sums_of(const std::vector<Record>& records) {
  std::vector<TrafficSum> sums;
  for (const Record& record : records) {
    auto same = std::find_if(sums.begin(), sums.end(), [&](const TrafficSum& sum) {
      return sum.axis == record.axis && sum.operation == record.operation;
    });
    if (same == sums.end())
      same = sums.insert(
          sums.end(), {.axis = record.axis, .operation = record.operation, .ranks = record.ranks});
    ++same->calls;
    same->elements += record.elements;
    same->bytes += record.bytes;
    same->sent += sent_bytes(record);
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const TrafficSum& a, const TrafficSum& b) { return a.sent > b.sent; });
  return sums;
}

int64_t total_sent(const std::vector<Record>& records) {
  int64_t total = 0;
  for (const Record& record : records) total += sent_bytes(record);
  return total;
}

}  // namespace shardproof
