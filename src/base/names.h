// Dotted names and the patterns that plans are written in: a `*` stands for one layer number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

// "a" + "b" = "a.b"; an empty prefix adds no dot.
std::string join_name(std::string_view prefix, std::string_view name);

std::vector<std::string> split(std::string_view text, char separator);

// True where `pattern` names `name`: component by component between dots; a component `*` matches a
// component of digits only, as in transformers' plans ("model.layers.*.mlp.up_proj").
bool pattern_matches(std::string_view pattern, std::string_view name);

// The candidate nearest to `word` by edit distance, or "" where none is near (for "did you mean").
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardproof
