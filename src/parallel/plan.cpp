#include "parallel/plan.h"

#include <algorithm>

namespace shardproof {

Plan merged(const Plan& base, const Plan& overrides) {
  Plan result = base;
  for (const PlanRule& rule : overrides) {
    const auto same = std::find_if(result.begin(), result.end(), [&](const PlanRule& other) {
      return other.pattern == rule.pattern;
    });
    if (same == result.end()) {
      if (!rule.style.empty()) result.push_back(rule);
    } else if (rule.style.empty()) {
      result.erase(same);
    } else {
      *same = rule;
    }
  }
  return result;
}

}  // namespace shardproof
