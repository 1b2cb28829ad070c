// Names from files as they appear in messages.
#pragma once

#include <string>
#include <string_view>

namespace shardproof {

// `text` in single quotes, control characters as \xNN, cut to a readable length: a message stays
// one line whatever the file holds.
std::string quote(std::string_view text);

}  // namespace shardproof
