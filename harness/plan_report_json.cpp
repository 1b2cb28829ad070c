#include <nlohmann/json.hpp>

#include "harness/plan_report.h"

namespace shardproof {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Finding& finding) {
  return {{"severity", finding.severity == Finding::Severity::kError ? "error" : "note"},
          {"check", finding.check},
          {"pattern", finding.rule.pattern},
          {"style", finding.rule.style},
          {"origin", finding.rule.origin},
          {"subject", finding.subject},
          {"message", finding.message}};
}

Json to_json(const ParameterRow& row, const std::vector<int64_t>& ranks) {
  Json json = {{"name", row.name},           {"count", row.names.size()}, {"shape", row.shape},
               {"placement", row.placement}, {"style", row.style},        {"units", row.units},
               {"bytes", row.bytes},         {"local", Json::array()}};
  for (size_t i = 0; i < ranks.size(); ++i)
    json["local"].push_back(
        {{"rank", ranks[i]}, {"shape", row.local[i].shape}, {"bytes", row.local[i].bytes}});
  return json;
}

Json to_json(const RankState& state) {
  return {{"rank", state.rank},
          {"parameters", state.parameters},
          {"gradients", state.gradients},
          {"moments", state.moments},
          {"total", state.total()}};
}

Json to_json(const TrafficReport& report) {
  Json json = {{"batch", report.batch.batch},
               {"length", report.batch.length},
               {"rank", report.rank},
               {"sums", Json::array()},
               {"unknown", report.traffic.unknown},
               {"routed", Json::array()}};
  for (const RoutedRows& rows : report.traffic.routed)
    json["routed"].push_back({{"module", rows.module},
                              {"least", rows.least},
                              {"balanced", rows.balanced},
                              {"most", rows.most}});
  for (const TrafficSum& sum : sums_of(report.traffic.records))
    json["sums"].push_back({{"axis", sum.axis},
                            {"operation", sum.operation},
                            {"ranks", sum.ranks},
                            {"calls", sum.calls},
                            {"elements", sum.elements},
                            {"bytes", sum.bytes},
                            {"sent", sum.sent}});
  return json;
}

Json to_json(const Verdict& verdict) {
  const MemoryUse& use = verdict.use;
  return {{"phase", to_string(use.phase)},
          {"rank", use.rank},
          {"parameters", use.parameters},
          {"gradients", use.gradients},
          {"moments", use.moments},
          {"gathered", use.gathered},
          {"buffers", use.buffers},
          {"activations", use.activations},
          {"cache", use.cache},
          {"total", use.total()},
          {"available", verdict.available},
          {"margin", verdict.margin()},
          {"fits", verdict.fits()}};
}

}  // namespace

void print_json(const PlanReport& report, std::ostream& out) {
  Json json = {{"schema", "shardproof-plan/1"},
               {"model", report.model},
               {"layout", report.layout},
               {"ranks", report.mesh.world_size()},
               {"dtype", report.dtype},
               {"elements", report.state.elements},
               {"errors", 0},
               {"findings", Json::array()},
               {"not_checked", report.not_checked},
               {"parameters", Json::array()}};
  int64_t errors = 0;
  for (const Finding& finding : report.findings) {
    json["findings"].push_back(to_json(finding));
    if (finding.severity == Finding::Severity::kError) ++errors;
  }
  json["errors"] = errors;
  for (const ParameterRow& row : report.parameters)
    json["parameters"].push_back(to_json(row, report.ranks));
  json["totals"] = {{"fullest", to_json(report.state.fullest)},
                    {"emptiest", to_json(report.state.emptiest)}};
  int64_t uncovered = 0;
  for (const Uncovered& hole : report.coverage.holes) uncovered += hole.elements;
  json["coverage"] = {{"elements", report.coverage.elements}, {"uncovered", uncovered}};
  if (report.traffic) json["traffic"] = to_json(*report.traffic);
  if (!report.memory.empty()) {
    json["memory"] = Json::array();
    for (const Verdict& verdict : report.memory) json["memory"].push_back(to_json(verdict));
  }
  if (report.suggestions) {
    json["suggestions"] = Json::array();
    for (const Suggestion& suggestion : *report.suggestions)
      json["suggestions"].push_back({{"layout", suggestion.config.layout()},
                                     {"sent", suggestion.sent},
                                     {"peak", suggestion.peak()},
                                     {"fits", suggestion.fits()}});
  }
  // Names of files may hold any bytes.
  out << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace shardproof
