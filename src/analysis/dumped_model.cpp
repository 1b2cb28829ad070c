// A tree of modules from a dump.
#include <algorithm>
#include <unordered_map>

#include "analysis/model_dump.h"
#include "base/check.h"
#include "base/names.h"
#include "parallel/style.h"

namespace shardproof {
namespace {

class DumpedModule final : public Module {
 public:
  DumpedModule(std::string type, Signature signature)
      : Module(std::move(type), std::move(signature)) {}
  using Module::add_child;
  using Module::add_parameter;

 protected:
  NamedTensors forward(const NamedTensors&) override {
    SP_EXPECT(false, "{} was made from a dump: it has no code", label());
  }
};

// What a dump and the rules say of the modules.
class Builder {
 public:
  Builder(const ModelDump& dump, const std::vector<Plan>& plans) : dump_(dump) {
    for (const Plan& plan : plans) {
      for (const PlanRule& rule : plan) {
        const Style* style = shipped_styles().find(rule.style);
        if (style == nullptr) continue;
        if (style->packed) packed_.push_back(rule.pattern);
        if (style->fits == std::vector<std::string>{"SplitLinear"}) split_.push_back(rule.pattern);
      }
    }
    for (const auto& module : dump.modules) described_[module.path] = &module;
  }

  std::shared_ptr<Module> build() {
    for (const auto& module : dump_.modules) node(module.path);
    std::unordered_map<std::string, std::string> first;  // of the names of a tied parameter
    for (const auto& group : dump_.tied)
      for (const std::string& name : group) first[name] = group.front();
    std::unordered_map<std::string, ParamPtr> made;
    for (const auto& parameter : dump_.parameters) {
      const auto tied = first.find(parameter.name);
      ParamPtr& own = made[tied == first.end() ? parameter.name : tied->second];
      if (!own) own = std::make_shared<Parameter>(parameter.shape, cuts_of(parameter));
      SP_VALIDATE(own->shape() == parameter.shape,
                  "the tied parameter {} has shape {} and shape {}", parameter.name,
                  fmt::join(parameter.shape, "x"), fmt::join(own->shape(), "x"));
      const size_t dot = parameter.name.rfind('.');
      const std::string path = dot == std::string::npos ? "" : parameter.name.substr(0, dot);
      node(path)->add_parameter(
          dot == std::string::npos ? parameter.name : parameter.name.substr(dot + 1), own);
    }
    const std::shared_ptr<Module> root = node("");
    root->finish();
    return root;
  }

 private:
  std::shared_ptr<DumpedModule> node(const std::string& path) {
    if (const auto found = nodes_.find(path); found != nodes_.end()) return found->second;
    const auto made = make(path);
    nodes_[path] = made;
    if (!path.empty()) {
      const size_t dot = path.rfind('.');
      const std::string local = dot == path.npos ? path : path.substr(dot + 1);
      node(dot == path.npos ? "" : path.substr(0, dot))->add_child(local, made);
    }
    return made;
  }

  std::shared_ptr<DumpedModule> make(const std::string& path) const {
    const auto described = described_.find(path);
    if (described == described_.end())
      return std::make_shared<DumpedModule>("Module", Signature{.inputs = {{"hidden_states"}}});
    const auto& [_, type, kind] = *described->second;
    const bool split = matches(split_, path);
    if (kind == ModelDump::Kind::kLinear && split)
      return std::make_shared<DumpedModule>(
          "SplitLinear", Signature{.inputs = {{"input"}}, .outputs = {{"compressed"}, {"rope"}}});
    if (kind == ModelDump::Kind::kLinear)
      return std::make_shared<DumpedModule>("Linear",
                                            Signature{.inputs = {{"input", true, "weight", 1}},
                                                      .outputs = {{"output", true, "weight", 0}}});
    if (kind == ModelDump::Kind::kEmbedding)
      return std::make_shared<DumpedModule>(
          "Embedding",
          Signature{.inputs = {{"input_ids"}}, .outputs = {{"output", true, "weight", 1}}});
    if (type.ends_with("Experts"))
      return std::make_shared<DumpedModule>(
          "Experts", Signature{.inputs = {{"hidden_states"}, {"top_k_index"}, {"top_k_weights"}}});
    return std::make_shared<DumpedModule>(type.empty() ? "Module" : type,
                                          Signature{.inputs = {{"hidden_states"}}});
  }

  static bool matches(const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return pattern_matches(pattern, name); });
  }

  std::vector<Cut> cuts_of(const ModelDump::DumpedParameter& parameter) const {
    std::vector<Cut> cuts;
    for (const int64_t size : parameter.shape) cuts.push_back(Cut::plain(size));
    const std::vector<std::string> parts = split(parameter.name, '.');
    const std::string path = parameter.name.substr(
        0, parameter.name.size() - std::min(parameter.name.size(), parts.back().size() + 1));
    const std::string module = parts.size() > 1 ? parts[parts.size() - 2] : "";
    const auto dims = static_cast<int64_t>(cuts.size());
    if (dims == 0) return cuts;
    const int64_t heads = dump_.heads, keys = dump_.key_value_heads, width = dump_.head_dim;
    const bool grouped = heads > 0 && keys > 0 && width > 0 && heads % keys == 0;
    const auto query_cut = [&] {
      return Cut::units(heads * width, heads / keys * width, Spread::kShare, width);
    };
    const auto key_cut = [&] { return Cut::units(keys * width, width, Spread::kCopies); };
    if (grouped && module.find("qkv") != std::string::npos &&
        parameter.shape[0] == (heads + 2 * keys) * width) {
      const Section key = key_cut().sections.front();
      cuts[0] = {{query_cut().sections.front(), key, key}};
      return cuts;
    }
    if (matches(packed_, path) || matches(packed_, parameter.name)) {
      for (int64_t dim = std::max<int64_t>(dims - 2, 0); dim < dims; ++dim) {
        const int64_t size = parameter.shape[dim];
        if (size % 2 == 0) cuts[dim] = {{{size / 2}, {size / 2}}};
      }
      return cuts;
    }
    if (!grouped) return cuts;
    const Cut query = query_cut();
    if (module == "q_proj" && parameter.shape[0] == heads * width) cuts[0] = query;
    if (module == "o_proj" && dims == 2 && parameter.shape[1] == heads * width) cuts[1] = query;
    if ((module == "k_proj" || module == "v_proj") && parameter.shape[0] == keys * width)
      cuts[0] = key_cut();
    return cuts;
  }

  const ModelDump& dump_;
  std::vector<std::string> packed_, split_;  // patterns of rules
  std::unordered_map<std::string, const ModelDump::DumpedModule*> described_;
  std::unordered_map<std::string, std::shared_ptr<DumpedModule>> nodes_;
};

}  // namespace

std::shared_ptr<Module> model_from_dump(const ModelDump& dump, const DistributedConfig& config) {
  const auto given = [](const std::optional<Plan>& plan) { return plan.value_or(Plan{}); };
  return Builder(dump, {dump.plans.tp, dump.plans.ep, given(config.tp_plan), given(config.ep_plan)})
      .build();
}

}  // namespace shardproof
