#include "analysis/model_dump.h"

#include <algorithm>

#include "base/check.h"
#include "base/names.h"
#include "io/quote.h"
#include "models/json_fields.h"

namespace shardproof {
namespace {

constexpr int64_t kVersion = 1;

ModelDump::Kind kind_of(const std::string& text, const std::string& where) {
  if (text == "Linear") return ModelDump::Kind::kLinear;
  if (text == "Embedding") return ModelDump::Kind::kEmbedding;
  SP_VALIDATE(text.empty(), "{}: the kind {} is none of Linear, Embedding and \"\"", where,
              quote(text));
  return ModelDump::Kind::kOther;
}

const nlohmann::json& array_at(const nlohmann::json& json, const std::string& key,
                               const std::string& origin) {
  const auto found = json.find(key);
  SP_VALIDATE(found != json.end() && found->is_array(), "{}: key '{}' must be a list", origin, key);
  return *found;
}

Plan plan_at(const nlohmann::json& json, const std::string& key, const std::string& origin) {
  Plan plan;
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return plan;
  SP_VALIDATE(found->is_object(), "{}: key 'plans.{}' must be an object", origin, key);
  for (const auto& [pattern, style] : found->items()) {
    SP_VALIDATE(style.is_string(), "{}: key 'plans.{}': the style of {} is no string", origin, key,
                quote(pattern));
    plan.push_back({pattern, style.get<std::string>()});
  }
  return plan;
}

std::vector<int64_t> shape_of(const nlohmann::json& shape, const std::string& where) {
  SP_VALIDATE(shape.is_array(), "{}: its shape is no list", where);
  std::vector<int64_t> sizes;
  for (const auto& size : shape) {
    SP_VALIDATE(size.is_number_integer() && size.get<int64_t>() >= 0,
                "{}: its shape is not of sizes: {}", where, shape.dump());
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

void read_heads(ModelDump& dump, const JsonFields& config) {
  const auto size = [&](const char* key) { return config.has(key) ? config.integer(key) : 0; };
  try {
    dump.heads = size("num_attention_heads");
    dump.key_value_heads =
        config.has("num_key_value_heads") ? size("num_key_value_heads") : dump.heads;
    dump.head_dim = size("head_dim");
    if (dump.head_dim == 0 && dump.heads > 0) dump.head_dim = size("hidden_size") / dump.heads;
  } catch (const InputError&) {
    // A list, one number a layer: then heads are not known for all.
    dump.heads = dump.key_value_heads = dump.head_dim = 0;
  }
}

std::string parent_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? "" : name.substr(0, dot);
}

}  // namespace

ModelDump parse_dump(const std::string& text, const std::string& origin) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  SP_VALIDATE(json.is_object(), "{}: not a JSON object: it must be what plan_dump.py writes",
              origin);
  const JsonFields fields(json, origin);
  SP_VALIDATE(fields.integer("shardproof_dump") == kVersion,
              "{}: a dump of version {}, this program reads {}", origin,
              fields.integer("shardproof_dump"), kVersion);
  ModelDump dump;
  dump.model = fields.text("model");
  dump.model_type = fields.text("model_type", "");
  dump.dtype = fields.text("dtype", "float32");
  read_heads(dump, fields.object("config"));
  for (const auto& item : array_at(json, "modules", origin)) {
    const JsonFields module(item, origin, "modules.");
    const std::string path = module.text("path");
    dump.modules.push_back(
        {path, module.text("class", ""), kind_of(module.text("kind", ""), origin + ": " + path)});
  }
  for (const auto& item : array_at(json, "parameters", origin)) {
    const JsonFields parameter(item, origin, "parameters.");
    const std::string name = parameter.text("name");
    dump.parameters.push_back({name, shape_of(item.value("shape", nlohmann::json()),
                                              fmt::format("{}: parameter {}", origin, name))});
  }
  if (json.contains("tied")) {
    for (const auto& group : array_at(json, "tied", origin)) {
      SP_VALIDATE(
          group.is_array() && std::all_of(group.begin(), group.end(),
                                          [](const auto& name) { return name.is_string(); }),
          "{}: key 'tied' must be lists of names", origin);
      dump.tied.push_back(group.get<std::vector<std::string>>());
    }
  }
  if (json.contains("plans")) {
    dump.plans.tp = plan_at(json["plans"], "tp", origin);
    dump.plans.fsdp = plan_at(json["plans"], "fsdp", origin);
    dump.plans.ep = plan_at(json["plans"], "ep", origin);
  }
  return dump;
}

ModelDump dump_of_files(const CheckpointFiles& files, const std::string& config_json,
                        const std::string& origin) {
  const JsonFields config = JsonFields::parse(config_json, origin);
  ModelDump dump;
  dump.model_type = config.text("model_type", "");
  dump.model = dump.model_type;
  read_heads(dump, config);
  std::map<std::string, ModelDump::Kind> kinds;
  for (const std::string& name : files.names()) {
    const std::vector<int64_t>& shape = files.entry(name).shape;
    dump.parameters.push_back({name, shape});
    const std::string path = parent_of(name);
    ModelDump::Kind& kind = kinds[path];
    if (shape.size() != 2 || !name.ends_with(".weight")) continue;
    const std::string local = split(path, '.').back();
    kind = local.find("embed") != local.npos || local == "wte" ? ModelDump::Kind::kEmbedding
                                                               : ModelDump::Kind::kLinear;
  }
  for (const auto& [path, kind] : kinds)
    dump.modules.push_back({path, path.ends_with(".experts") ? "Experts" : "", kind});
  return dump;
}

}  // namespace shardproof
