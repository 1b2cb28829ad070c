// DistributedConfig to and from JSON as transformers 5.24 writes it.
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/names.h"
#include "parallel/distributed_config.h"

namespace shardproof {

namespace {

using Json = nlohmann::ordered_json;

int64_t read_size(const std::string& key, const Json& value) {
  if (value.is_null()) return 1;
  SP_VALIDATE(value.is_number_integer(), "DistributedConfig: {} is {}, not a whole number", key,
              value.dump());
  return value.get<int64_t>();
}

bool read_bool(const std::string& key, const Json& value) {
  SP_VALIDATE(value.is_boolean(), "DistributedConfig: {} is {}, not true or false", key,
              value.dump());
  return value.get<bool>();
}

std::string read_text(const std::string& key, const Json& value) {
  SP_VALIDATE(value.is_string(), "DistributedConfig: {} is {}, not a string", key, value.dump());
  return value.get<std::string>();
}

// null and "auto" mean the model's own plan.
std::optional<Plan> read_plan(const std::string& key, const Json& value) {
  if (value.is_null() || value == "auto") return std::nullopt;
  SP_VALIDATE(value.is_object(), "DistributedConfig: {} is {}, not an object of pattern: style",
              key, value.dump());
  Plan plan;
  for (const auto& [pattern, style] : value.items()) {
    plan.push_back({pattern, style.is_null() ? "" : read_text(key + "." + pattern, style), key});
  }
  return plan;
}

Json write_plan(const std::optional<Plan>& plan) {
  if (!plan) return nullptr;
  Json object = Json::object();
  for (const PlanRule& rule : *plan) object[rule.pattern] = rule.style;
  return object;
}

std::vector<std::string> read_order(const std::string& key, const Json& value) {
  SP_VALIDATE(value.is_array(), "DistributedConfig: {} is {}, not a list of axis names", key,
              value.dump());
  std::vector<std::string> order;
  for (const Json& axis : value) order.push_back(read_text(key, axis));
  return order;
}

// One reader a field: the one list of keys that are known.
using Reader = void (*)(DistributedConfig&, const std::string&, const Json&);
const std::vector<std::pair<std::string, Reader>> kReaders = {
    {"tp_size", [](auto& c, auto& key, auto& value) { c.tp_size = read_size(key, value); }},
    {"tp_plan", [](auto& c, auto& key, auto& value) { c.tp_plan = read_plan(key, value); }},
    {"sp_plan", [](auto& c, auto& key, auto& value) { c.sp_plan = read_plan(key, value); }},
    {"enable_sequence_parallel",
     [](auto& c, auto& key, auto& value) { c.enable_sequence_parallel = read_bool(key, value); }},
    {"enable_expert_parallel",
     [](auto& c, auto& key, auto& value) { c.enable_expert_parallel = read_bool(key, value); }},
    {"fsdp_size", [](auto& c, auto& key, auto& value) { c.fsdp_size = read_size(key, value); }},
    {"dp_replicate_size",
     [](auto& c, auto& key, auto& value) { c.dp_replicate_size = read_size(key, value); }},
    {"fsdp_plan", [](auto& c, auto& key, auto& value) { c.fsdp_plan = read_plan(key, value); }},
    {"fsdp_cpu_offload",
     [](auto& c, auto& key, auto& value) { c.fsdp_cpu_offload = read_bool(key, value); }},
    {"fsdp_mixed_precision",
     [](auto& c, auto& key, auto& value) { c.fsdp_mixed_precision = read_bool(key, value); }},
    {"pp_size", [](auto& c, auto& key, auto& value) { c.pp_size = read_size(key, value); }},
    {"ep_size", [](auto& c, auto& key, auto& value) { c.ep_size = read_size(key, value); }},
    {"ep_plan", [](auto& c, auto& key, auto& value) { c.ep_plan = read_plan(key, value); }},
    {"ep_implementation",
     [](auto& c, auto& key, auto& value) { c.ep_implementation = read_text(key, value); }},
    {"mesh_order", [](auto& c, auto& key, auto& value) { c.mesh_order = read_order(key, value); }},
};

}  // namespace

DistributedConfig config_from_json(const std::string& json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  SP_VALIDATE(object.is_object(), "DistributedConfig: not a JSON object");
  DistributedConfig config;
  std::vector<std::string> known;
  for (const auto& [key, reader] : kReaders) known.push_back(key);
  for (const auto& [key, value] : object.items()) {
    const auto same = std::find(known.begin(), known.end(), key);
    if (same == known.end()) {
      const std::string near = nearest_word(key, known);
      throw InputError(
          fmt::format("DistributedConfig: unknown key \"{}\"{}", key,
                      near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
    }
    kReaders[same - known.begin()].second(config, key, value);
  }
  // As transformers reads it: without a size, experts go over the ranks of tp, and nothing else
  // does.
  const bool sized = object.contains("ep_size") && !object["ep_size"].is_null();
  if (config.enable_expert_parallel && !sized) {
    config.ep_size = config.tp_size;
    if (!config.tp_plan) config.tp_plan = Plan{};
  }
  config.validate();
  return config;
}

std::string to_json(const DistributedConfig& config) {
  Json object;
  object["tp_size"] = config.tp_size;
  object["tp_plan"] = write_plan(config.tp_plan);
  object["enable_sequence_parallel"] = config.enable_sequence_parallel;
  object["enable_expert_parallel"] = config.enable_expert_parallel;
  object["fsdp_size"] = config.fsdp_size;
  object["dp_replicate_size"] = config.dp_replicate_size;
  object["fsdp_plan"] = write_plan(config.fsdp_plan);
  object["fsdp_cpu_offload"] = config.fsdp_cpu_offload;
  object["fsdp_mixed_precision"] = config.fsdp_mixed_precision;
  object["pp_size"] = config.pp_size;
  object["ep_size"] = config.ep_size;
  object["ep_plan"] = write_plan(config.ep_plan);
  object["ep_implementation"] = config.ep_implementation;
  // Ours alone: written only where they differ, so that what transformers wrote comes back as it
  // was.
  if (config.sp_plan) object["sp_plan"] = write_plan(config.sp_plan);
  if (config.mesh_order != DistributedConfig{}.mesh_order) object["mesh_order"] = config.mesh_order;
  return object.dump(2);
}

}  // namespace shardproof
