// Plans from files, TOML or JSON, every rule with the line that it stands in.
#pragma once

#include <filesystem>
#include <string_view>

#include "parallel/distributed_config.h"

namespace shardproof {

// A file holds either rules at its top, {"pattern": "style", ...}, which are a tp_plan, or tables
// of rules, named as in DistributedConfig. A style of "" (JSON: or null) takes the model's own rule
// away; an empty table, and in JSON an empty object, means no rule at all. An empty TOML file is an
// error.
struct PlanFile {
  std::optional<Plan> tp_plan, sp_plan, fsdp_plan, ep_plan;
};

enum class PlanFormat { kToml, kJson };

// `file` names the text in messages and in each rule's origin, "plan.toml:3". Throws InputError
// "file:line: ..." for text that is not of the format, a key given twice, a style that is no
// string, a table that is none of the four, rules both at the top and in tables.
PlanFile parse_plan(std::string_view text, const std::string& file, PlanFormat format);

// By the name's end: .json, else TOML. Throws InputError, also where the file cannot be read.
PlanFile read_plan_file(const std::filesystem::path& path);

// Sets the plans that the file gives.
void set_plans(DistributedConfig& config, const PlanFile& plans);

}  // namespace shardproof
