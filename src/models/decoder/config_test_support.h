// Helpers of the tests of config.json: the smallest one, with changes, and what is refused.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/decoder/options.h"

namespace shardproof::testing {

using nlohmann::json;
using ParseConfig = DecoderOptions (*)(const std::string&, const std::string&);

// Six heads on two; `changes` replace or add keys, "remove" takes one away.
inline DecoderOptions parse_with(ParseConfig parse, const json& changes) {
  json config = {{"vocab_size", 11},       {"hidden_size", 24},        {"intermediate_size", 13},
                 {"num_hidden_layers", 3}, {"num_attention_heads", 6}, {"num_key_value_heads", 2},
                 {"pad_token_id", nullptr}};
  config.update(changes);
  for (const auto& [key, value] : changes.items()) {
    if (value == "remove") config.erase(key);
  }
  return parse(config.dump(), "x/config.json");
}

inline void expect_refused(ParseConfig parse, const json& changes,
                           const std::vector<std::string>& parts) {
  try {
    parse_with(parse, changes);
    FAIL() << "accepted: " << changes;
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("x/config.json"), message.npos) << message;
    for (const auto& part : parts) EXPECT_NE(message.find(part), message.npos) << message;
  }
}

// The window of each layer, 0 where it has none.
inline std::vector<int64_t> windows_of(const DecoderOptions& options) {
  std::vector<int64_t> windows;
  for (const DecoderLayerOptions& layer : options.layers)
    windows.push_back(layer.window.value_or(0));
  return windows;
}

}  // namespace shardproof::testing
