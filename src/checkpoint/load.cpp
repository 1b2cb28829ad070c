#include "checkpoint/load.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {
namespace {

// Reads the box that takes interval `chosen[dim]` of each dim into its place in `kept`.
void load_box(const CheckpointFiles& files, const std::string& source, const Region& region,
              const std::vector<size_t>& chosen, const at::Tensor& kept) {
  std::vector<int64_t> begin, size;
  at::Tensor target = kept;
  for (size_t dim = 0; dim < region.size(); ++dim) {
    int64_t offset = 0;
    for (size_t i = 0; i < chosen[dim]; ++i) offset += region[dim][i].size();
    const Interval& interval = region[dim][chosen[dim]];
    begin.push_back(interval.begin);
    size.push_back(interval.size());
    target = target.narrow(static_cast<int64_t>(dim), offset, interval.size());
  }
  target.copy_(files.read_box(source, begin, size));
}

// All boxes of the region: the product of its intervals.
void load_region(const CheckpointFiles& files, const std::string& source, const Region& region,
                 const at::Tensor& kept) {
  if (numel(region) == 0) return;
  std::vector<size_t> chosen(region.size(), 0);
  while (true) {
    load_box(files, source, region, chosen, kept);
    size_t dim = region.size();
    while (dim > 0 && ++chosen[dim - 1] == region[dim - 1].size()) chosen[--dim] = 0;
    if (dim == 0) return;
  }
}

void check_all_taken(Module& model, const CheckpointFiles& files,
                     const std::vector<std::string>& ignored) {
  std::unordered_set<std::string> taken;
  for (const ParamPtr& parameter : model.all_parameters()) {
    taken.insert(parameter->names().begin(), parameter->names().end());
  }
  std::vector<std::string> extra;
  for (const std::string& name : files.names()) {
    const bool is_ignored = std::any_of(ignored.begin(), ignored.end(), [&](const auto& pattern) {
      return pattern_matches(pattern, name);
    });
    if (!is_ignored && !taken.contains(name)) extra.push_back(name);
  }
  SP_VALIDATE(
      extra.empty(),
      "{}: the tensor '{}'{} belongs to no parameter of the model; is config.json that of this "
      "checkpoint?",
      files.file_of(extra.front()).path().string(), extra.front(),
      extra.size() > 1 ? fmt::format(" (and {} more)", extra.size() - 1) : "");
}

struct Source {
  ParamPtr parameter;
  std::string name;
};

// Everything is checked before anything is read.
std::vector<Source> checked_sources(Module& model, const CheckpointFiles& files,
                                    const std::vector<std::string>& ignored) {
  std::vector<Source> sources;
  for (const ParamPtr& parameter : model.all_parameters()) {
    const auto& names = parameter->names();
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const std::string& name) { return files.contains(name); });
    SP_VALIDATE(
        found != names.end(), "{}: there is no tensor '{}', of shape {}, that the model needs",
        files.path().string(), fmt::join(names, "' or '"), fmt::format("{}", parameter->shape()));
    const TensorEntry& entry = files.entry(*found);
    SP_VALIDATE(std::equal(entry.shape.begin(), entry.shape.end(), parameter->shape().begin(),
                           parameter->shape().end()),
                "{}: the tensor '{}' has shape {}, the model's has {}",
                files.file_of(*found).path().string(), *found, entry.shape, parameter->shape());
    sources.push_back({parameter, *found});
  }
  check_all_taken(model, files, ignored);
  return sources;
}

}  // namespace

void check_parameters(Module& model, const CheckpointFiles& files,
                      const std::vector<std::string>& ignored) {
  checked_sources(model, files, ignored);
}

void load_parameters(Module& model, const CheckpointFiles& files,
                     const std::vector<std::string>& ignored) {
  for (const ParamPtr& parameter : model.all_parameters()) {
    SP_EXPECT(parameter->placed(), "{} is not placed: parallelize the model or place_whole() first",
              parameter->name());
  }
  const std::vector<Source> sources = checked_sources(model, files, ignored);
  const at::NoGradGuard no_grad;
  for (const Source& source : sources) {
    load_region(files, source.name, source.parameter->kept_region(), source.parameter->kept());
  }
}

}  // namespace shardproof
