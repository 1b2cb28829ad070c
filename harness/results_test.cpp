#include "harness/results.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/test_source.h"
#include "harness/report_text.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

Row row(const std::string& name, double error, bool passed) {
  return {.key = {Kind::kGradient, name, 0},
          .elements = 2,
          .error = error,
          .allowed = 1e-10,
          .passed = passed,
          .note = {}};
}

Group group(std::vector<Row> rows) {
  Group made{.scenario = "s",
             .model = "m",
             .layout = "tp=2",
             .dtype = "float64",
             .against = "single",
             .ranks_as = "threads",
             .message = {},
             .rows = std::move(rows)};
  made.status = judge(made.rows);
  return made;
}

TEST(Results, NothingComparedIsAFailure) {
  Results results;
  EXPECT_EQ(results.status(true), 1);
  results.groups.push_back(group({}));
  EXPECT_EQ(results.groups[0].status, GroupStatus::kNotCompared);
  EXPECT_EQ(results.status(true), 1);
}

TEST(Results, SkipsFailUnlessAllowed) {
  Results results;
  results.groups = {group({row("a", 1e-16, true)}), group({})};
  results.groups[1].status = GroupStatus::kSkipped;
  EXPECT_EQ(results.status(false), 1);
  EXPECT_EQ(results.status(true), 0);
  results.groups.erase(results.groups.begin());
  EXPECT_EQ(results.status(true), 1);  // all were skipped
}

TEST(Results, NamesTheFirstWrongTensor) {
  const Group wrong = group({row("a", 1e-16, true), row("b", 0.5, false), row("c", 0.9, false)});
  EXPECT_EQ(wrong.status, GroupStatus::kFailed);
  const std::string line = group_line(wrong);
  EXPECT_NE(line.find("2 of 3 tensors wrong"), std::string::npos) << line;
  EXPECT_NE(line.find("first wrong: b gradient: error 5.0e-01, allowed 1.0e-10"), std::string::npos)
      << line;
}

TEST(Results, ALayoutInAWorkingTypeSaysSoAndShowsItsShare) {
  Group passed = group({row("a", 2.5e-11, true), row("b", 1e-16, true)});
  passed.dtype = "float32";
  const std::string line = group_line(passed);
  EXPECT_NE(line.find("tp=2 float32"), std::string::npos) << line;
  EXPECT_NE(line.find("worst a gradient: 2.5e-11 of 1.0e-10 (25%)"), std::string::npos) << line;
  Results results;
  results.groups = {passed};
  const auto json = nlohmann::json::parse(to_json(results))["groups"][0];
  EXPECT_EQ(json["dtype"], "float32");
  EXPECT_EQ(json["layout"], "tp=2");
  EXPECT_DOUBLE_EQ(json["rows"][0]["share"], 0.25);
  passed.dtype = "float64";
  EXPECT_EQ(group_line(passed).find("float64"), std::string::npos);
}

TEST(Results, JsonHasNoInfinity) {
  Results results;
  results.groups = {group({row("a", INFINITY, false)})};
  const auto json = nlohmann::json::parse(to_json(results));
  EXPECT_TRUE(json["groups"][0]["rows"][0]["error"].is_null());
  EXPECT_EQ(json["groups"][0]["first_wrong"]["tensor"], "a");
  EXPECT_EQ(json["groups"][0]["status"], "failed");
}

Row tokens(const std::string& prompt, double differ, const std::string& note) {
  Row row{.key = {Kind::kTokens, prompt, 0}, .elements = 8, .error = differ, .note = note};
  row.passed = true;
  row.margins = {0.5, INFINITY};
  return row;
}

TEST(Results, GenerationSaysWhichTokensDiffer) {
  Row margins{.key = {Kind::kMargins, "all prompts", 0}, .note = {}};
  margins.error = 0.01;
  margins.allowed = 0.04;
  margins.passed = true;
  Group passed =
      group({tokens("prompt 0", 0, ""), tokens("prompt 1", 3, "step 6: token"), margins});
  const std::string line = group_line(passed);
  EXPECT_NE(
      line.find("2 sequences, 13 of 16 tokens the same, worst all prompts margins: 1.0e-02 of "
                "4.0e-02 (25%)"),
      std::string::npos)
      << line;
  EXPECT_NE(line.find("\n     differs, as rounding may: prompt 1: step 6: token"),
            std::string::npos)
      << line;
  Results results;
  results.groups = {passed};
  const auto json = nlohmann::json::parse(to_json(results))["groups"][0]["rows"];
  EXPECT_EQ(json[0]["kind"], "tokens");
  EXPECT_EQ(json[0]["margins"][0], 0.5);
  EXPECT_TRUE(json[0]["margins"][1].is_null());
  EXPECT_FALSE(json[2].contains("margins"));
  passed.rows[1].passed = false;
  passed.status = judge(passed.rows);
  EXPECT_NE(group_line(passed).find("1 of 3 comparisons wrong\n     first wrong: prompt 1 tokens: "
                                    "error 3.0e+00, allowed 0.0e+00 (step 6: token)"),
            std::string::npos)
      << group_line(passed);
}

// What a schema says of one object, checked as far as this needs: keys that must be there, keys
// that may, and enumerations, through arrays and references.
void check(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root,
           const std::string& where) {
  if (schema.contains("$ref")) {
    const std::string name =
        schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
    return check(value, root["$defs"][name], root, where);
  }
  if (schema.contains("anyOf")) {
    if (!value.is_null()) check(value, schema["anyOf"][0], root, where);
    return;
  }
  if (schema.contains("enum")) {
    const auto& allowed = schema["enum"];
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), value), allowed.end())
        << where << ": " << value;
  }
  if (value.is_array() && schema.contains("items"))
    for (const auto& item : value) check(item, schema["items"], root, where + "[]");
  if (!value.is_object() || !schema.contains("properties")) return;
  for (const auto& key : schema["required"])
    EXPECT_TRUE(value.contains(key)) << where << "." << key;
  for (const auto& [key, item] : value.items()) {
    EXPECT_TRUE(schema["properties"].contains(key))
        << where << "." << key << " is not in the schema";
    if (schema["properties"].contains(key))
      check(item, schema["properties"][key], root, where + "." + key);
  }
}

TEST(Results, JsonFollowsTheCommittedSchema) {
  const auto schema =
      nlohmann::json::parse(read_text_file(source_folder() / "reports" / "results.schema.json"));
  Results results;
  results.groups = {group({row("a", 1e-16, true)}), group({row("b", 1, false)}), group({}),
                    group({tokens("prompt 0", 0, "")})};
  results.groups[2].status = GroupStatus::kSkipped;
  check(nlohmann::json::parse(to_json(results)), schema, schema, "results");
}

}  // namespace
}  // namespace shardproof
