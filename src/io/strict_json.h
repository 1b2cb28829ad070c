// JSON without the leniency of the parser below it: a key that appears twice, deep nesting and
// bytes after the end are errors. For this layer's .cpp files only: other layers do not see the
// library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardproof {

struct JsonLimits {
  int depth = 8;             // of nested objects and arrays
  int64_t array_items = 64;  // of one array
};

// Parses `text`, which messages call `what` ("x.json", "y.safetensors: header"). InputError, one
// line, where it is not JSON or goes beyond the limits. Depth and lengths are checked while
// parsing, before anything is built from what lies beyond.
nlohmann::json parse_strict_json(std::string_view text, std::string_view what,
                                 const JsonLimits& limits = {});

}  // namespace shardproof
