// Which rules hold on a mesh: the plans of the model, overridden by those of the config. Pure.
#pragma once

#include "parallel/distributed_config.h"
#include "parallel/plan.h"

namespace shardproof {

struct RuleInForce {
  PlanRule rule;      // with an origin where a user gave it
  std::string means;  // the style of the registry that the rule's stands for here
};

// Empty where the axis has size 1.
struct RulesInForce {
  std::vector<RuleInForce> tp;  // with sequence parallel sp's rules merged over them
  std::vector<RuleInForce> ep;  // which take what they name, and what is inside it, from tp
  Plan fsdp;
};

RulesInForce rules_in_force(const DistributedConfig& config, const ModelPlans& plans,
                            const MeshShape& mesh);

}  // namespace shardproof
