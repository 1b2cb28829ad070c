// What a run of the program found, as data: results.json and the text on the screen are made of
// this.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/comparison.h"

namespace shardproof {

enum class GroupStatus { kNotCompared, kPassed, kFailed, kSkipped, kBroken };
const char* status_name(GroupStatus status);

// One run of one model on one layout, compared with one other.
struct Group {
  std::string scenario, model, layout;
  std::string dtype;  // that the layout computed in; "" where there is more than one
  std::string against, ranks_as;
  GroupStatus status = GroupStatus::kNotCompared;
  std::string message;  // why it was skipped, or broke
  std::vector<Row> rows;
  double seconds = 0;
};

// From the rows alone: failed where one did not pass or there is none.
GroupStatus judge(const std::vector<Row>& rows);

struct Results {
  std::string command, host, started;  // started: UTC, ISO 8601
  int64_t ranks = 1;
  double seconds = 0;
  int exit_status = 3;  // until the run has ended
  std::string message;  // why the run broke
  std::vector<Group> groups;

  // 1 where a group failed or broke, was skipped though skips are not allowed, or there is none;
  // else 0.
  int status(bool allow_skips) const;
};

// The document of reports/results.schema.json.
std::string to_json(const Results& results);
// Under a temporary name, then renamed. Throws InputError where it cannot be written.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace shardproof
