// A plan is data: pattern -> style name, in order. Patterns are dotted names with `*` for a layer
// number.
#pragma once

#include <string>
#include <vector>

namespace shardproof {

struct PlanRule {
  std::string pattern;
  std::string style;
  std::string origin = {};  // "file:line" where a user wrote it, "" for a shipped plan
  bool operator==(const PlanRule& other) const {
    return pattern == other.pattern && style == other.style;
  }
};

using Plan = std::vector<PlanRule>;

// Rules of `overrides` replace those of `base` with the same pattern; others are added. An override
// with the style "" takes the rule away.
Plan merged(const Plan& base, const Plan& overrides);

// The plans that a model family ships. The patterns name modules or parameters of their own.
struct ModelPlans {
  Plan tp;
  Plan fsdp;
  Plan sp = {};  // merged over tp where sequence parallel is on
  Plan ep = {};  // of experts on ranks of their own; replaces tp's rules on the same modules
};

}  // namespace shardproof
