// Names of the layers of a model, which differ in numbers only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

// A name with every number between its dots taken out, as plans write it: "model.layers.3.mlp" ->
// "model.layers.*.mlp" and {3}.
struct StarredName {
  std::string pattern;
  std::vector<int64_t> numbers;
};
StarredName starred(const std::string& name);

}  // namespace shardproof
