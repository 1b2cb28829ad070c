// Small text files, read whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardproof {

// The bytes of the file; InputError where it cannot be read or has more than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, int64_t limit = int64_t{16} << 20);

}  // namespace shardproof
