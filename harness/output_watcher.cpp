#include "harness/output_watcher.h"

#include <algorithm>
#include <cctype>

#include "base/names.h"

namespace shardproof {

struct OutputWatcher::State {
  std::shared_ptr<const ResolvedPlan> plan;
  MeshPtr mesh;
  RowRange rows;
  ValueSink sink;
  std::map<std::string, int> calls;  // of a name, so far
  bool active = false;

  void show(const std::string& path, const std::string& output, const at::Tensor& tensor,
            bool only);
};

// `only`: the module has one output, so that its path is name enough.
void OutputWatcher::State::show(const std::string& path, const std::string& output,
                                const at::Tensor& tensor, bool only) {
  std::string name = path.empty() ? output : only ? path : path + ":" + output;
  if (const int call = ++calls[name]; call > 1) name += fmt::format("#{}", call);

  const Placement placement = plan->output(path, output);
  const int64_t tp_size = mesh->size("tp");
  const int64_t tp_rank = mesh->coordinate("tp");
  const bool sharded = tp_size > 1 && placement.is_shard();
  // A style says "the last dim" before it knows how many there are: -1.
  const int64_t dim = placement.dim < 0 ? placement.dim + tensor.dim() : placement.dim;
  const int64_t local_rows = tensor.dim() > 0 ? tensor.size(0) : -1;
  const auto part = [=, rows = rows](const std::vector<int64_t>& shape) {
    Part mine{whole_region(shape), {}};
    bool counts = sharded || tp_rank == 0;
    if (!shape.empty() && shape[0] == rows.samples && local_rows == rows.mine.count) {
      mine.region[0] = normalized({{rows.mine.first, rows.mine.first + rows.mine.count}});
    } else if (rows.mine.first != 0) {
      counts = false;  // made for all samples alike (a rotary table): the first data rank counts it
    }
    Region owned = mine.region;
    if (sharded) {
      const Cut& cut = placement.cut;
      mine.region.at(dim) = cut_intervals(cut, shape.at(dim), tp_size, tp_rank);
      owned.at(dim) = owned_intervals(cut, shape.at(dim), tp_size, tp_rank);
    }
    if (counts) mine.owned = std::move(owned);
    return mine;
  };
  // Integers (which experts a router chose) are compared as numbers.
  const bool integers = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  sink({{Kind::kOutput, name, 0}, integers ? tensor.to(at::kDouble) : tensor.detach(), part});
}

class OutputWatcher::Hook final : public ModuleHook {
 public:
  explicit Hook(std::weak_ptr<State> state) : state_(std::move(state)) {}
  void after(Module& module, NamedTensors& outputs) override {
    const std::shared_ptr<State> state = state_.lock();
    if (!state || !state->active) return;
    for (const auto& [name, tensor] : outputs)
      if (tensor.defined()) state->show(module.path(), name, tensor, outputs.size() == 1);
  }

 private:
  std::weak_ptr<State> state_;
};

OutputWatcher::OutputWatcher(PlacedModel& placed, Watch watch, RowRange rows, ValueSink sink)
    : state_(std::make_shared<State>()) {
  state_->plan = placed.plan;
  state_->mesh = placed.mesh;
  state_->rows = rows;
  state_->sink = std::move(sink);
  for (Module* module : placed.causal_lm.model->modules())
    if (is_watched(module->path(), watch)) module->add_hook(std::make_shared<Hook>(state_));
}

void OutputWatcher::start() { state_->active = true; }
void OutputWatcher::stop() { state_->active = false; }

bool is_watched(const std::string& path, Watch watch) {
  if (watch == Watch::kModules) return true;
  const std::vector<std::string> parts = split(path, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i)  // something below a numbered module is not
    if (!parts[i].empty() && std::all_of(parts[i].begin(), parts[i].end(),
                                         [](unsigned char c) { return std::isdigit(c) != 0; }))
      return false;
  return true;
}

}  // namespace shardproof
