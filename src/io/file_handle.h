// One open file: the owner of a descriptor, read and written at positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace shardproof {

// Reads from several threads at once are safe. Every failure is an InputError that names the file.
class FileHandle {
 public:
  // Opens a regular file for reading.
  static FileHandle open(const std::filesystem::path& path);
  // Makes a new file for writing; nothing where the name is already taken.
  static std::optional<FileHandle> create(const std::filesystem::path& path);

  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  const std::filesystem::path& path() const { return path_; }
  // Bytes in the file when it was opened.
  int64_t size() const { return size_; }

  // Fills `out` from `offset` on; an error where the file has become too short for that.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  void write_at(int64_t offset, std::span<const std::byte> data);
  // Writes what the system still holds back to the disk, then closes.
  void sync_and_close();

 private:
  FileHandle(std::filesystem::path path, int descriptor, int64_t size);

  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace shardproof
