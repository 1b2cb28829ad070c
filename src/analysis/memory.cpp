#include "analysis/memory.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"

namespace shardproof {
namespace {

// A unit on one rank, in bytes.
struct UnitSize {
  std::string path;
  bool freed = true;      // after forward
  bool sharded = false;   // its axis has several ranks
  int64_t whole = 0;      // its views
  int64_t gradients = 0;  // laid out as the shards
  int64_t full = 0;       // gradients of its views
  int64_t saved = 0;      // by the modules in it, of those that are in no unit within
};

bool is_inside(const std::string& path, const std::string& unit) {
  return unit.empty() || path == unit || path.starts_with(unit + ".");
}

// Bytes at one moment of a step, beside parameters and moments.
struct Moment {
  int64_t gradients = 0, gathered = 0, buffers = 0, activations = 0;
  int64_t total() const { return gradients + gathered + buffers + activations; }
};

class Meter {
 public:
  Meter(Module& model, const ResolvedPlan& plan, int64_t rank, const MemoryOptions& options)
      : model_(model), plan_(plan), rank_(rank), options_(options), sizes_(options.sizes) {
    std::unordered_map<std::string, std::vector<const ResolvedUnit*>> units;
    for (const ResolvedUnit& unit : plan.units) units[unit.path].push_back(&unit);
    std::map<std::pair<std::string, std::string>, size_t> index;  // by path, axis
    for (const Module* module : model.modules()) {
      const auto here = units.find(module->path());
      if (here == units.end()) continue;
      for (const ResolvedUnit* unit : here->second) {
        index[{unit->path, unit->data_axis}] = units_.size();
        units_.push_back({.path = unit->path,
                          .freed = unit->free_after_forward,
                          .sharded = plan.mesh.size(unit->data_axis) > 1});
      }
    }
    std::unordered_map<std::string, bool> trained;
    for (const ParamPtr& parameter : model.all_parameters())
      trained[parameter->name()] = parameter->requires_grad;
    size_t at = 0;
    for (const ParameterState& state : parameters_on(model, plan, rank, sizes_)) {
      const ResolvedParameter& resolved = plan.parameters.at(at++);
      UnitSize& unit = units_.at(index.at({state.unit, resolved.data_axis()}));
      parameters_ += state.bytes;
      // A view of zeros, where it could otherwise be the shard itself.
      if (!unit.sharded && resolved.edge.masks(plan.mesh.coordinate(rank, resolved.axis)))
        masked_ += state.view_elements * sizes_.parameter;
      largest_ = std::max(largest_, state.elements);
      unit.whole += state.view_elements * sizes_.parameter;
      if (!trained.at(state.name)) continue;
      unit.gradients += state.elements * sizes_.gradient;
      unit.full += state.view_elements * sizes_.gradient;
      moments_ += 2 * state.elements * sizes_.moment;
    }
  }

  MemoryUse use(Phase phase) {
    MemoryUse use{.phase = phase, .rank = rank_, .parameters = parameters_, .gathered = masked_};
    switch (phase) {
      case Phase::kLoad:
        use.buffers = largest_ * sizes_.parameter;
        break;
      case Phase::kGenerate:
        generate(use);
        break;
      case Phase::kTrain:
        train(use);
        break;
    }
    return use;
  }

 private:
  bool replicated() const { return plan_.mesh.size("dp_replicate") > 1; }

  // Views that are there while the module at this path computes: with experts on ranks of their own
  // of two units.
  int64_t whole_at(const std::string& path) const {
    int64_t bytes = 0;
    for (const UnitSize& unit : units_)
      if (unit.path == path && unit.sharded) bytes += unit.whole;
    return bytes;
  }

  // Adds what modules save to the innermost unit around each.
  Activations spread_activations(const BatchShape& batch) {
    Activations activations = activations_of(model_, plan_, batch, rank_, sizes_);
    for (UnitSize& unit : units_) unit.saved = 0;
    for (const SavedBytes& module : activations.saved) {
      UnitSize* home = &units_.front();
      for (UnitSize& unit : units_)
        if (is_inside(module.module, unit.path) && unit.path.size() > home->path.size())
          home = &unit;
      home->saved += module.bytes;
    }
    return activations;
  }

  void generate(MemoryUse& use) {
    const Activations activations = spread_activations(options_.generate);
    use.cache = cache_bytes(model_, plan_, options_.generate, rank_, sizes_);
    int64_t layer = 0, gathered = 0;
    for (const UnitSize& unit : units_) {
      layer = std::max(layer, unit.saved);
      if (!unit.sharded) continue;
      if (unit.path.empty()) {
        use.gathered += unit.whole;  // all the time of a forward
      } else {
        use.buffers = std::max(use.buffers, unit.whole);
        gathered = std::max(gathered, whole_at(unit.path));
      }
    }
    use.gathered += gathered;
    use.activations = layer + activations.logits;
  }

  void train(MemoryUse& use) {
    const Activations activations = spread_activations(options_.train);
    use.moments = moments_;
    Moment now{.gathered = masked_}, worst, all;
    now.activations = activations.logits + activations.loss_work + activations.total_saved();
    for (const UnitSize& unit : units_) {
      use.gradients += unit.gradients;
      if (unit.sharded && (!unit.freed || unit.path.empty())) now.gathered += unit.whole;
    }
    all.activations = now.activations;
    const auto look = [&](const Moment& moment) {
      if (moment.total() > worst.total()) worst = moment;
      all.gathered = std::max(all.gathered, moment.gathered);
      all.buffers = std::max(all.buffers, moment.buffers);
    };
    look(now);  // the loss's backward
    now.activations -= activations.loss_work;
    // Units in the order of backward; what the root unit holds stays to the end.
    for (size_t i = units_.size(); i-- > 0;) {
      const UnitSize& unit = units_[i];
      Moment during = now;
      if (unit.sharded) {
        if (unit.freed && !unit.path.empty()) during.gathered += whole_at(unit.path);
        during.buffers = unit.full + unit.gradients;
      } else {
        during.gradients += unit.full;
        during.buffers = replicated() ? unit.full : 0;
      }
      look(during);
      now.gradients += unit.gradients;
      now.activations -= unit.saved;
      if (unit.sharded && (!unit.freed || unit.path.empty())) now.gathered -= unit.whole;
    }
    // The norm of the largest gradient in float64, and AdamW's denominator.
    now.buffers = largest_ * std::max<int64_t>(sizes_.moment, sizes_.gradient == 8 ? 8 : 16);
    look(now);
    use.gathered = all.gathered;
    use.buffers = all.buffers;
    use.activations = all.activations;
    use.overlap = use.gradients + use.gathered + use.buffers + use.activations - worst.total();
  }

  Module& model_;
  const ResolvedPlan& plan_;
  int64_t rank_;
  MemoryOptions options_;
  ItemSizes sizes_;
  std::vector<UnitSize> units_;  // in the order of forward, the root unit first
  int64_t parameters_ = 0;
  int64_t moments_ = 0;
  int64_t masked_ = 0;
  int64_t largest_ = 0;  // elements of the largest shard
};

}  // namespace

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kGenerate:
      return "generate";
    case Phase::kTrain:
      return "train";
  }
  return "?";
}

MemoryUse memory_of(Module& model, const ResolvedPlan& plan, Phase phase, int64_t rank,
                    const MemoryOptions& options) {
  return Meter(model, plan, rank, options).use(phase);
}

MemoryUse memory_of_fullest(Module& model, const ResolvedPlan& plan, Phase phase,
                            const MemoryOptions& options) {
  MemoryUse fullest = memory_of(model, plan, phase, 0, options);
  const bool masks = std::any_of(
      plan.parameters.begin(), plan.parameters.end(),
      [](const ResolvedParameter& parameter) { return parameter.edge.masks(/*coordinate=*/1); });
  if (!masks) return fullest;
  for (size_t i = 0; i < plan.mesh.axes().size(); ++i) {
    const auto& [name, size] = plan.mesh.axes()[i];
    if (size == 1 || (name != "tp" && name != "ep_fsdp")) continue;
    std::vector<int64_t> coordinates(plan.mesh.axes().size(), 0);
    coordinates[i] = 1;
    MemoryUse use = memory_of(model, plan, phase, plan.mesh.rank(coordinates), options);
    if (use.total() > fullest.total()) fullest = use;
  }
  return fullest;
}

}  // namespace shardproof
