#include "io/file_handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace shardproof {
namespace {

std::string error_text(int code) { return std::generic_category().message(code); }

// The system moves at most about 2 GiB a call; asking for less keeps the counts in every type's
// range.
constexpr size_t kLargestCall = size_t{1} << 30;

}  // namespace

FileHandle FileHandle::open(const std::filesystem::path& path) {
  int descriptor;
  do {
    // Without O_NONBLOCK, a named pipe in place of the file would wait for a writer.
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor < 0 && errno == EINTR);
  SP_VALIDATE(descriptor >= 0, "{}: cannot be opened: {}", path.string(), error_text(errno));
  FileHandle file(path, descriptor, 0);
  struct stat status {};
  SP_VALIDATE(::fstat(descriptor, &status) == 0, "{}: cannot be examined: {}", path.string(),
              error_text(errno));
  SP_VALIDATE(S_ISREG(status.st_mode), "{}: is not a regular file", path.string());
  file.size_ = status.st_size;
  return file;
}

std::optional<FileHandle> FileHandle::create(const std::filesystem::path& path) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0 && errno == EEXIST) return std::nullopt;
  SP_VALIDATE(descriptor >= 0, "{}: cannot be created: {}", path.string(), error_text(errno));
  return FileHandle(path, descriptor, 0);
}

FileHandle::FileHandle(std::filesystem::path path, int descriptor, int64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileHandle::read_at(int64_t offset, std::span<std::byte> out) const {
  const int64_t first = offset;
  const auto wanted = static_cast<int64_t>(out.size());
  while (!out.empty()) {
    const ssize_t got =
        ::pread(descriptor_, out.data(), std::min(out.size(), kLargestCall), offset);
    if (got < 0 && errno == EINTR) continue;
    SP_VALIDATE(got >= 0, "{}: reading {} bytes at {} failed: {}", path_.string(), wanted, first,
                error_text(errno));
    SP_VALIDATE(got > 0,
                "{}: ends at byte {} where bytes {} to {} were wanted: the file had {} bytes when "
                "it was opened and was cut since",
                path_.string(), offset, first, first + wanted, size_);
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

void FileHandle::write_at(int64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_, data.data(), std::min(data.size(), kLargestCall), offset);
    if (put < 0 && errno == EINTR) continue;
    SP_VALIDATE(put > 0, "{}: writing {} bytes at {} failed: {}", path_.string(), data.size(),
                offset, error_text(put < 0 ? errno : ENOSPC));
    data = data.subspan(static_cast<size_t>(put));
    offset += put;
  }
}

void FileHandle::sync_and_close() {
  SP_VALIDATE(::fsync(descriptor_) == 0, "{}: cannot be written to disk: {}", path_.string(),
              error_text(errno));
  // Some file systems report a full disk only here.
  SP_VALIDATE(::close(std::exchange(descriptor_, -1)) == 0, "{}: closing failed: {}",
              path_.string(), error_text(errno));
}

}  // namespace shardproof
