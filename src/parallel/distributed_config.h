// DistributedConfig: how a model is spread over ranks. Fields are spelled as in transformers 5.24,
// plus `sp_plan` and `mesh_order`. A plan that is absent means the model's own; one that is given
// replaces rule by rule; `{}` means no rule at all.
#pragma once

#include <optional>

#include "mesh/mesh_shape.h"
#include "parallel/plan.h"

namespace shardproof {

struct DistributedConfig {
  int64_t tp_size = 1;
  std::optional<Plan> tp_plan;
  bool enable_sequence_parallel = false;
  bool enable_expert_parallel = false;
  int64_t fsdp_size = 1;
  int64_t dp_replicate_size = 1;
  std::optional<Plan> fsdp_plan;
  bool fsdp_cpu_offload = false;
  bool fsdp_mixed_precision = false;
  int64_t pp_size = 1;
  int64_t ep_size = 1;
  std::optional<Plan> ep_plan;
  std::string ep_implementation = "auto";
  std::optional<Plan> sp_plan;
  // Outermost first.
  std::vector<std::string> mesh_order = {"dp_replicate", "fsdp", "tp"};

  // The axes in mesh_order with their sizes, sizes of 1 included.
  MeshShape mesh() const;
  // Throws InputError, by field name and value, for what is wrong or not supported.
  void validate() const;
  // "fsdp=2,tp=2"; axes of size 1 are left out, all of size 1 gives "single".
  std::string layout() const;
  bool operator==(const DistributedConfig&) const = default;
};

// From "fsdp=2,tp=2" (any order; "single" or "" = one rank). Throws InputError naming the text.
DistributedConfig config_from_layout(const std::string& layout);

// JSON as transformers writes it (unknown keys are refused by name), and back.
DistributedConfig config_from_json(const std::string& json);
std::string to_json(const DistributedConfig& config);

}  // namespace shardproof
