#include "analysis/activations.h"

#include <algorithm>
#include <map>

#include "analysis/elements.h"
#include "analysis/values.h"
#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

// How the values of one rank lie.
class LocalValues {
 public:
  LocalValues(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank)
      : plan_(plan), batch_(batch), values_(model) {
    size_ = plan.mesh.size("tp");
    coordinate_ = plan.mesh.coordinate(rank, "tp");
    for (const ResolvedModule& module : plan.modules) ruled_[module.path] = &module;
  }

  const Values& values() const { return values_; }

  const ResolvedPort* edge(const std::string& path, const std::string& port, bool input) const {
    const auto rule = ruled_.find(path);
    if (rule == ruled_.end()) return nullptr;
    for (const ResolvedPort& edged : input ? rule->second->inputs : rule->second->outputs)
      if (edged.name == port) return &edged;
    return nullptr;
  }

  // Of the value as the module computes with it; 0 where no link states its width.
  int64_t input(const std::string& path, const std::string& port) const {
    const ResolvedPort* edged = edge(path, port, true);
    return elements(path, port, true, edged ? edged->edge.inside : plan_.input(path, port));
  }
  // Of the value as the caller gets it; `section`: of that part only.
  int64_t output(const std::string& path, const std::string& port, int64_t section = -1) const {
    return elements(path, port, false, plan_.output(path, port), section);
  }

 private:
  int64_t elements(const std::string& path, const std::string& port, bool input,
                   Placement placement, int64_t section = -1) const {
    std::optional<int64_t> width = values_.width(path, port, input, section);
    if (is_cut_by_tokens(placement)) placement.cut = Cut::plain(batch_.length);
    if (placement.is_shard() && placement.dim == -1 && !placement.cut.sections.empty()) {
      if (section >= 0) placement.cut.sections = {placement.cut.sections.at(section)};
      width = placement.cut.width();
    }
    if (!width) return 0;
    return elements_held({batch_.batch, batch_.length, *width}, placement, size_, coordinate_);
  }

  const ResolvedPlan& plan_;
  BatchShape batch_;
  Values values_;
  int64_t size_, coordinate_;
  std::map<std::string, const ResolvedModule*> ruled_;
};

class Estimate {
 public:
  Estimate(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
           const ItemSizes& sizes)
      : local_(model, plan, batch, rank),
        tokens_(batch.tokens()),
        value_(sizes.value),
        wide_(std::max<int64_t>(sizes.value, 4)) {
    visit(model, "");
    logits(model, plan);
  }

  Activations result() { return std::move(result_); }

 private:
  void visit(const Module& module, const std::string& parent) {
    const int64_t bytes = module.children().empty() ? leaf(module, parent) : container(module);
    if (bytes > 0) result_.saved.push_back({module.path(), bytes});
    for (const auto& [name, child] : module.children()) visit(*child, module.path());
  }

  int64_t leaf(const Module& module, const std::string& parent) {
    const std::string& path = module.path();
    if (module.type() == "RmsNorm") return local_.input(path, "hidden_states") * (wide_ + value_);
    if (module.type() == "Embedding") return 2 * tokens_ * 8;
    int64_t bytes = 0;
    for (const Port& port : module.signature().inputs) {
      if (is_new(path, port.name, parent)) bytes += local_.input(path, port.name) * value_;
    }
    return bytes;
  }

  // False where a sibling has the same tensor already.
  bool is_new(const std::string& path, const std::string& port, const std::string& parent) {
    const std::string source = local_.values().source(path, port);
    if (source.empty()) return true;
    const ResolvedPort* edged = local_.edge(path, port, true);
    auto& seen = seen_[{parent, source}];
    const Edge edge = edged ? edged->edge : Edge{};
    if (std::find(seen.begin(), seen.end(), edge) != seen.end()) return false;
    seen.push_back(edge);
    return true;
  }

  int64_t container(const Module& module) const {
    const std::string& path = module.path();
    const auto output = [&](const char* child, int64_t section = -1) {
      return local_.output(join_name(path, child), "output", section) * value_;
    };
    if (module.type() == "Attention") {
      const bool packed = std::any_of(module.children().begin(), module.children().end(),
                                      [](const auto& child) { return child.first == "qkv_proj"; });
      if (packed) return output("qkv_proj") + output("qkv_proj", 0) + output("qkv_proj", 1);
      return output("q_proj") + output("k_proj") + output("v_proj");
    }
    if (module.type() == "GatedMlp") return 2 * output("gate_proj") + output("up_proj");
    if (module.type() == "PackedGatedMlp")
      return output("gate_up_proj") + output("gate_up_proj") / 2;
    return 0;
  }

  // log_softmax keeps what it gives; its backward and that before it make one more each. Of logits
  // that are cut, the loss keeps them in the wide type, and makes one.
  void logits(const Module& model, const ResolvedPlan& plan) {
    if (model.signature().outputs.size() != 1) return;
    const std::string& name = model.signature().outputs.front().name;
    const int64_t elements = local_.output("", name);
    const bool cut = plan.output("", name).is_shard();
    result_.logits = elements * value_ + (cut && wide_ == value_ ? 0 : elements * wide_);
    result_.loss_work = elements * wide_ * (cut ? 1 : 2);
  }

  LocalValues local_;
  int64_t tokens_, value_, wide_;
  Activations result_;
  std::map<std::pair<std::string, std::string>, std::vector<Edge>> seen_;
};

// Width of a head on a dim of a child's weight; `names`: the first of them that is there.
int64_t head_width(const Module& module, const std::vector<std::string>& names, int64_t dim) {
  for (const auto& [name, child] : module.children()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    for (const auto& [local, parameter] : child->parameters())
      if (local == "weight") return parameter->cut(dim).sections.at(0).unit;
  }
  SP_EXPECT(false, "{}: it has no child {}", module.path(), fmt::join(names, " or "));
}

// Keys and values of the local heads, which are those that kv_b_proj gives.
int64_t latent_cache(const Module& module, const LocalValues& local) {
  const int64_t given = local.output(join_name(module.path(), "kv_b_proj"), "output");
  return given / head_width(module, {"kv_b_proj"}, 0) *
         (head_width(module, {"q_proj", "q_b_proj"}, 0) + head_width(module, {"o_proj"}, 1));
}

}  // namespace

int64_t Activations::total_saved() const {
  int64_t total = 0;
  for (const SavedBytes& module : saved) total += module.bytes;
  return total;
}

Activations activations_of(Module& model, const ResolvedPlan& plan, const BatchShape& batch,
                           int64_t rank, const ItemSizes& sizes) {
  return Estimate(model, plan, batch, rank, sizes).result();
}

int64_t cache_bytes(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
                    const ItemSizes& sizes) {
  const LocalValues local(model, plan, batch, rank);
  int64_t elements = 0;
  for (const Module* module : model.modules()) {
    if (module->type() == "LatentAttention") elements += latent_cache(*module, local);
    if (module->type() != "Attention") continue;
    for (const auto& [name, child] : module->children()) {
      if (name == "k_proj") elements += 2 * local.output(child->path(), "output");
      if (name == "qkv_proj") elements += 2 * local.output(child->path(), "output", 1);
    }
  }
  return elements * sizes.value;
}

}  // namespace shardproof
