// What is wrong with a plan, or worth knowing of it: data, made by resolve() and by analysis.
#pragma once

#include <string>
#include <vector>

#include "parallel/plan.h"

namespace shardproof {

struct Finding {
  enum class Severity {
    kNote,   // true of the plan, and no reason to refuse it
    kError,  // the run would be wrong, or not what the author of the rule wanted
  };
  Severity severity = Severity::kError;
  std::string check;    // a stable name: "unmatched", "edges", ...
  PlanRule rule = {};   // that it is about; without one, pattern ""
  std::string subject;  // module or parameter, "" = the plan
  std::string message;  // a sentence that names rule, subject and numbers, and says what to do
};
using Findings = std::vector<Finding>;

// 'tp_plan rule "lm_head": "colwise"', with file and line before it where they are known.
std::string named(const PlanRule& rule);

// An error where a user wrote the rule, a note where it is shipped.
Finding about_rule(std::string check, const PlanRule& rule, std::string subject,
                   std::string message);
// An error, whoever wrote the rule.
Finding wrong_rule(std::string check, const PlanRule& rule, std::string subject,
                   std::string message);

bool has_errors(const Findings& findings);
// Throws InputError with the messages of all errors, one a line; nothing where there are none.
void throw_errors(const Findings& findings);

}  // namespace shardproof
