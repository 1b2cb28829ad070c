#include "io/quote.h"

#include <fmt/format.h>

namespace shardproof {

std::string quote(std::string_view text) {
  constexpr size_t kLongest = 200;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  if (text.size() > kLongest) result += fmt::format("... ({} bytes)", text.size());
  return result + "'";
}

}  // namespace shardproof
