#include "analysis/state.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/check.h"

namespace shardproof {
namespace {

using ByName = std::unordered_map<std::string, ParamPtr>;

ByName by_name(Module& model) {
  ByName found;
  for (const ParamPtr& parameter : model.all_parameters()) found[parameter->name()] = parameter;
  return found;
}

const Parameter& named_in(const ByName& parameters, const std::string& name) {
  const auto hit = parameters.find(name);
  SP_EXPECT(hit != parameters.end(), "the plan has a parameter {}, the model has none", name);
  return *hit->second;
}

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shown(const Placements& placements) {
  std::vector<std::string> parts;
  for (const auto& [axis, placement] : placements)
    if (!placement.is_replicate()) parts.push_back(axis + " " + placement.to_string());
  return parts.empty() ? "R" : fmt::format("{}", fmt::join(parts, ", "));
}

// Parameters that lie alike on every rank.
struct Class {
  std::vector<int64_t> shape;
  Placements placements;
  bool trained = true;
  int64_t count = 0;
};

std::vector<Class> classes_of(Module& model, const ResolvedPlan& plan) {
  const ByName parameters = by_name(model);
  std::vector<Class> classes;
  for (const ResolvedParameter& resolved : plan.parameters) {
    const Parameter& parameter = named_in(parameters, resolved.name);
    auto same = std::find_if(classes.begin(), classes.end(), [&](const Class& c) {
      return c.shape == parameter.shape() && c.trained == parameter.requires_grad &&
             c.placements == resolved.kept_placements;
    });
    if (same == classes.end())
      same = classes.insert(
          classes.end(), {parameter.shape(), resolved.kept_placements, parameter.requires_grad, 0});
    ++same->count;
  }
  return classes;
}

RankState state_at(const std::vector<Class>& classes, const MeshShape& mesh, int64_t rank,
                   const ItemSizes& sizes) {
  RankState state{.rank = rank};
  for (const Class& c : classes) {
    const int64_t elements = c.count * numel(region_of(c.shape, c.placements, mesh, rank));
    state.elements += elements;
    state.parameters += elements * sizes.parameter;
    if (!c.trained) continue;
    state.gradients += elements * sizes.gradient;
    state.moments += 2 * elements * sizes.moment;
  }
  return state;
}

// One rank, the lowest, for each coordinate on the axes that cut something.
std::vector<int64_t> different_ranks(const std::vector<Class>& classes, const MeshShape& mesh) {
  std::set<std::string> cut;
  for (const Class& c : classes)
    for (const auto& [axis, placement] : c.placements)
      if (placement.is_shard())
        for (const std::string& part : mesh.parts(axis)) cut.insert(part);
  std::vector<int64_t> ranks = {0};
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    if (!cut.contains(mesh.axes()[i].name)) continue;
    std::vector<int64_t> step(mesh.axes().size(), 0);
    step[i] = 1;
    const int64_t stride = mesh.axes()[i].size > 1 ? mesh.rank(step) : 0;
    const std::vector<int64_t> before = std::move(ranks);
    ranks.clear();
    for (const int64_t first : before)
      for (int64_t c = 0; c < mesh.axes()[i].size; ++c) ranks.push_back(first + c * stride);
  }
  return ranks;
}

}  // namespace

std::vector<ParameterState> parameters_on(Module& model, const ResolvedPlan& plan, int64_t rank,
                                          const ItemSizes& sizes) {
  const ByName parameters = by_name(model);
  std::vector<ParameterState> states;
  for (const ResolvedParameter& resolved : plan.parameters) {
    const Parameter& parameter = named_in(parameters, resolved.name);
    const Region kept = region_of(parameter.shape(), resolved.kept_placements, plan.mesh, rank);
    const Region view = region_of(parameter.shape(), resolved.view_placements, plan.mesh, rank);
    states.push_back({.name = resolved.name,
                      .shape = parameter.shape(),
                      .placement = shown(resolved.kept_placements),
                      .unit = resolved.unit,
                      .local_shape = local_shape(kept),
                      .elements = numel(kept),
                      .view_elements = numel(view),
                      .bytes = numel(kept) * sizes.parameter});
  }
  return states;
}

RankState state_on(Module& model, const ResolvedPlan& plan, int64_t rank, const ItemSizes& sizes) {
  return state_at(classes_of(model, plan), plan.mesh, rank, sizes);
}

ModelState state_of(Module& model, const ResolvedPlan& plan, const ItemSizes& sizes) {
  const std::vector<Class> classes = classes_of(model, plan);
  ModelState state;
  for (const Class& c : classes) state.elements += c.count * product(c.shape);
  bool first = true;
  for (const int64_t rank : different_ranks(classes, plan.mesh)) {
    const RankState here = state_at(classes, plan.mesh, rank, sizes);
    if (first || here.total() > state.fullest.total()) state.fullest = here;
    if (first || here.total() < state.emptiest.total()) state.emptiest = here;
    first = false;
  }
  return state;
}

}  // namespace shardproof
