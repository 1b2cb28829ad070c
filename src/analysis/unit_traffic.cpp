#include "analysis/unit_traffic.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "analysis/elements.h"
#include "analysis/state.h"
#include "base/check.h"

namespace shardproof {
namespace {

struct Item {
  const ResolvedParameter* resolved = nullptr;
  ParameterState state;
  bool trained = true;
};

class Units {
 public:
  Units(Module& model, const ResolvedPlan& plan, int64_t rank, at::ScalarType dtype)
      : plan_(plan), rank_(rank), dtype_(dtype) {
    std::unordered_map<std::string, bool> trained;
    for (const ParamPtr& parameter : model.all_parameters())
      trained[parameter->name()] = parameter->requires_grad;
    auto states = parameters_on(model, plan, rank);
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string name = states[i].name;
      items_[name] = {&plan.parameters[i], std::move(states[i]), trained.at(name)};
    }
  }

  std::vector<Record> all() {
    for (const ResolvedUnit& unit : plan_.units) add(unit);
    return std::move(records_);
  }

 private:
  void add(const ResolvedUnit& unit) {
    if (unit.parameters.empty()) return;
    int64_t kept = 0;
    std::vector<const Item*> trained;
    for (const std::string& name : unit.parameters) {
      const Item& item = items_.at(name);
      kept += item.state.elements;
      if (item.trained) trained.push_back(&item);
    }
    const std::string& data = unit.data_axis;
    if (size(data) > 1) {
      send("all_gather", data, size(data), {unit.path, "parameters", "forward"}, kept);
      if (unit.free_after_forward)
        send("all_gather", data, size(data), {unit.path, "parameters", "backward"}, kept);
    }
    if (!trained.empty()) reduce(unit, trained);
  }

  void reduce(const ResolvedUnit& unit, const std::vector<const Item*>& items) {
    const Site copies{unit.path, "copies", "backward"};
    const Site gradients{unit.path, "gradients", "backward"};
    int64_t whole = 0, kept = 0;
    std::vector<std::pair<std::string, int64_t>> sums;  // elements by communicator
    std::vector<int64_t> sizes;
    for (const Item* item : items) {
      whole += item->state.view_elements;
      kept += item->state.elements;
      const auto& [axis, edge] = std::tie(item->resolved->axis, item->resolved->edge);
      const Operation operation = plan_conversion(edge.grad_inside, edge.grad_outside, size(axis));
      if (!communicates(operation)) continue;
      int64_t ranks = size(axis);
      std::string comm = axis;
      if (operation == Operation::kBlockSum) {
        ranks = copies_block_size(edge.grad_inside.cut, size(axis));
        if (ranks < size(axis)) comm = fmt::format("{}/{}", axis, ranks);
        if (copies_in_part(edge.grad_inside.cut, size(axis))) {  // before fsdp cuts it
          send("all_reduce", comm, ranks, copies,
               elements_handed_in(item->state.shape, edge.grad_inside, edge.grad_outside,
                                  size(axis), plan_.mesh.coordinate(rank_, axis)));
          continue;
        }
      }
      auto sum = std::find_if(sums.begin(), sums.end(),
                              [&](const auto& other) { return other.first == comm; });
      if (sum == sums.end()) {
        sum = sums.insert(sums.end(), {comm, 0});
        sizes.push_back(ranks);
      }
      sum->second += item->state.elements;
    }
    const std::string& data = unit.data_axis;
    if (size(data) > 1) send("reduce_scatter", data, size(data), gradients, whole);
    if (size("dp_replicate") > 1)
      send("all_reduce", "dp_replicate", size("dp_replicate"), gradients, kept);
    for (size_t i = 0; i < sums.size(); ++i)
      send("all_reduce", sums[i].first, sizes[i], copies, sums[i].second);
  }

  int64_t size(const std::string& axis) const { return plan_.mesh.size(axis); }

  void send(const char* operation, const std::string& axis, int64_t ranks, const Site& site,
            int64_t elements) {
    records_.push_back(record_of(plan_.mesh, operation, axis, ranks, site, dtype_, elements));
  }

  const ResolvedPlan& plan_;
  int64_t rank_;
  at::ScalarType dtype_;
  std::unordered_map<std::string, Item> items_;
  std::vector<Record> records_;
};

}  // namespace

std::vector<Record> unit_traffic(Module& model, const ResolvedPlan& plan, int64_t rank,
                                 at::ScalarType dtype) {
  return Units(model, plan, rank, dtype).all();
}

}  // namespace shardproof
