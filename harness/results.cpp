#include "harness/results.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace shardproof {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json row_json(const Row& row) {
  Json json = {{"kind", kind_name(row.key.kind)},
               {"tensor", row.key.name},
               {"step", row.key.step},
               {"order", row.order},
               {"level", row.level},
               {"dtype", row.dtype},
               {"elements", row.elements},
               {"error", number(row.error)},
               {"allowed", number(row.allowed)},
               {"share", number(row.share())},
               {"passed", row.passed},
               {"zero", row.zero},
               {"note", row.note}};
  if (row.key.kind != Kind::kTokens) return json;
  json["margins"] = Json::array();
  for (const double margin : row.margins) json["margins"].push_back(number(margin));
  return json;
}

Json group_json(const Group& group) {
  Json json = {{"scenario", group.scenario},
               {"model", group.model},
               {"layout", group.layout},
               {"dtype", group.dtype},
               {"against", group.against},
               {"ranks_as", group.ranks_as},
               {"status", status_name(group.status)},
               {"message", group.message},
               {"seconds", group.seconds},
               {"compared", group.rows.size()}};
  const Row* most = worst(group.rows);
  const Row* wrong = first_wrong(group.rows);
  json["worst"] = most != nullptr ? row_json(*most) : Json(nullptr);
  json["first_wrong"] = wrong != nullptr ? row_json(*wrong) : Json(nullptr);
  json["rows"] = Json::array();
  for (const Row& row : group.rows) json["rows"].push_back(row_json(row));
  return json;
}

}  // namespace

const char* status_name(GroupStatus status) {
  switch (status) {
    case GroupStatus::kNotCompared:
      return "not compared";
    case GroupStatus::kPassed:
      return "passed";
    case GroupStatus::kFailed:
      return "failed";
    case GroupStatus::kSkipped:
      return "skipped";
    case GroupStatus::kBroken:
      return "broken";
  }
  return "?";
}

GroupStatus judge(const std::vector<Row>& rows) {
  if (rows.empty()) return GroupStatus::kNotCompared;
  return first_wrong(rows) == nullptr ? GroupStatus::kPassed : GroupStatus::kFailed;
}

int Results::status(bool allow_skips) const {
  bool compared = false;
  for (const Group& group : groups) {
    if (group.status == GroupStatus::kSkipped && allow_skips) continue;
    if (group.status != GroupStatus::kPassed) return 1;
    compared = true;
  }
  return compared ? 0 : 1;
}

std::string to_json(const Results& results) {
  Json json = {{"schema_version", 2},        {"program", "shardproof"},
               {"command", results.command}, {"host", results.host},
               {"started", results.started}, {"seconds", results.seconds},
               {"ranks", results.ranks},     {"exit_status", results.exit_status},
               {"message", results.message}};
  json["groups"] = Json::array();
  json["skips"] = Json::array();
  for (const Group& group : results.groups) {
    json["groups"].push_back(group_json(group));
    if (group.status == GroupStatus::kSkipped)
      json["skips"].push_back({{"scenario", group.scenario},
                               {"model", group.model},
                               {"layout", group.layout},
                               {"dtype", group.dtype},
                               {"reason", group.message}});
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void write_text_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  SP_VALIDATE(!out.fail(), "{}: could not be written", temporary.string());
  std::filesystem::rename(temporary, path);
}

}  // namespace shardproof
