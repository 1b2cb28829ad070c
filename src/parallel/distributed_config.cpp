#include "parallel/distributed_config.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/names.h"

namespace shardproof {

namespace {

const std::vector<std::string> kAxes = {"dp_replicate", "fsdp", "tp", "ep"};

int64_t* size_of(DistributedConfig& config, std::string_view axis) {
  if (axis == "dp_replicate") return &config.dp_replicate_size;
  if (axis == "fsdp") return &config.fsdp_size;
  if (axis == "tp") return &config.tp_size;
  if (axis == "ep") return &config.ep_size;
  return nullptr;
}

}  // namespace

MeshShape DistributedConfig::mesh() const {
  DistributedConfig copy = *this;
  std::vector<MeshAxis> axes;
  // Experts go over tp and, where there are more expert ranks, the inner part of fsdp.
  const int64_t inner = ep_size > tp_size ? ep_size / tp_size : 1;
  for (const std::string& axis : mesh_order) {
    if (axis == "fsdp" && inner > 1) {
      axes.push_back({"efsdp", fsdp_size / inner});
      axes.push_back({"ep_fsdp", inner});
    } else {
      axes.push_back({axis, *size_of(copy, axis)});
    }
  }
  if (ep_size == 1) return MeshShape(std::move(axes));
  if (inner == 1) return MeshShape(std::move(axes), {{"efsdp", {"fsdp"}}, {"ep", {"tp"}}});
  return MeshShape(std::move(axes), {{"fsdp", {"efsdp", "ep_fsdp"}}, {"ep", {"ep_fsdp", "tp"}}});
}

void DistributedConfig::validate() const {
  for (const auto& [field, size] : {std::pair{"tp_size", tp_size},
                                    {"fsdp_size", fsdp_size},
                                    {"dp_replicate_size", dp_replicate_size},
                                    {"ep_size", ep_size}}) {
    SP_VALIDATE(size >= 1, "{} is {}: it must be at least 1", field, size);
  }
  SP_VALIDATE(pp_size == 1, "pp_size is {}: pipeline parallelism is not supported, leave it at 1",
              pp_size);
  SP_VALIDATE(ep_size == 1 || (ep_size % tp_size == 0 && fsdp_size * tp_size % ep_size == 0),
              "ep_size is {}: it must be a multiple of tp_size ({}) and divide fsdp_size * tp_size "
              "({})",
              ep_size, tp_size, fsdp_size * tp_size);
  SP_VALIDATE(!enable_expert_parallel || ep_size > 1,
              "enable_expert_parallel is true and ep_size is 1: give the size");
  SP_VALIDATE(!fsdp_cpu_offload, "fsdp_cpu_offload is not supported yet, leave it false");
  SP_VALIDATE(!fsdp_mixed_precision, "fsdp_mixed_precision is not supported yet, leave it false");
  const std::vector<std::string> known = {"auto", "all_reduce", "all_to_all"};
  SP_VALIDATE(std::find(known.begin(), known.end(), ep_implementation) != known.end(),
              "ep_implementation is \"{}\": it is one of auto, all_reduce, all_to_all",
              ep_implementation);
  SP_VALIDATE(
      ep_implementation != "all_reduce" || ep_size == 1 || ep_size == tp_size,
      "ep_implementation is all_reduce, for expert ranks that share one batch: ep_size ({}) "
      "must then be tp_size ({})",
      ep_size, tp_size);
  std::vector<std::string> sorted = mesh_order;
  std::sort(sorted.begin(), sorted.end());
  SP_VALIDATE((sorted == std::vector<std::string>{"dp_replicate", "fsdp", "tp"}),
              "mesh_order is [{}]: it must name dp_replicate, fsdp and tp once each",
              fmt::join(mesh_order, ", "));
}

std::string DistributedConfig::layout() const {
  DistributedConfig copy = *this;
  std::vector<std::string> parts;
  for (const std::string& axis : kAxes) {
    if (const int64_t size = *size_of(copy, axis); size != 1)
      parts.push_back(fmt::format("{}={}", axis, size));
  }
  return parts.empty() ? "single" : fmt::format("{}", fmt::join(parts, ","));
}

DistributedConfig config_from_layout(const std::string& layout) {
  DistributedConfig config;
  if (layout.empty() || layout == "single") return config;
  std::vector<std::string> seen;
  for (const std::string& part : split(layout, ',')) {
    const size_t equals = part.find('=');
    SP_VALIDATE(equals != part.npos, "layout \"{}\": \"{}\" is not of the form axis=size", layout,
                part);
    const std::string axis = part.substr(0, equals);
    int64_t* size = size_of(config, axis);
    SP_VALIDATE(size != nullptr, "layout \"{}\": unknown axis \"{}\"; the axes are {}", layout,
                axis, fmt::join(kAxes, ", "));
    SP_VALIDATE(std::find(seen.begin(), seen.end(), axis) == seen.end(),
                "layout \"{}\": axis {} is given twice", layout, axis);
    seen.push_back(axis);
    const char* begin = part.data() + equals + 1;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(begin, end, *size);
    SP_VALIDATE(error == std::errc{} && stop == end && *size >= 1 && *size <= (int64_t{1} << 31),
                "layout \"{}\": the size of {} is \"{}\", not a whole number of at least 1", layout,
                axis, std::string(begin, end));
  }
  config.validate();
  return config;
}

}  // namespace shardproof
