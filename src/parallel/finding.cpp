#include "parallel/finding.h"

#include <algorithm>

#include "base/check.h"

namespace shardproof {

std::string named(const PlanRule& rule) {
  return fmt::format("{}rule \"{}\": \"{}\"", rule.origin.empty() ? "" : rule.origin + ": ",
                     rule.pattern, rule.style);
}

Finding about_rule(std::string check, const PlanRule& rule, std::string subject,
                   std::string message) {
  Finding finding = wrong_rule(std::move(check), rule, std::move(subject), std::move(message));
  if (rule.origin.empty()) finding.severity = Finding::Severity::kNote;
  return finding;
}

Finding wrong_rule(std::string check, const PlanRule& rule, std::string subject,
                   std::string message) {
  return {.severity = Finding::Severity::kError,
          .check = std::move(check),
          .rule = rule,
          .subject = std::move(subject),
          .message = named(rule) + (message.starts_with(':') ? "" : " ") + message};
}

bool has_errors(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Finding::Severity::kError;
  });
}

void throw_errors(const Findings& findings) {
  std::vector<std::string> messages;
  for (const Finding& finding : findings)
    if (finding.severity == Finding::Severity::kError) messages.push_back(finding.message);
  if (!messages.empty()) throw InputError(fmt::format("{}", fmt::join(messages, "\n")));
}

}  // namespace shardproof
