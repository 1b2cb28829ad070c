#include "io/text_file.h"

#include "base/check.h"
#include "io/file_handle.h"

namespace shardproof {

std::string read_text_file(const std::filesystem::path& path, int64_t limit) {
  const FileHandle file = FileHandle::open(path);
  SP_VALIDATE(file.size() <= limit, "{}: has {} bytes, more than the {} allowed for such a file",
              path.string(), file.size(), limit);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace shardproof
