// What the tests of this layer share: a scratch directory, raw files, the message of an error.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/error.h"

namespace shardproof {

class IoTest : public testing::Test {
 protected:
  IoTest() {
    std::string name = (std::filesystem::temp_directory_path() / "shardproof-io-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no scratch directory");
    directory_ = name;
  }
  ~IoTest() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path& directory() const { return directory_; }

  std::filesystem::path put(const std::string& name, std::string_view bytes) const {
    const auto path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    // A file cut to nothing and written again is flushed to the disk by some file systems: slow.
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  std::filesystem::path directory_;
};

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file as the format has it: length, header, data.
inline std::string raw_file(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data);
}

// The message of the InputError that `action` throws; it must be one line.
template <typename Action>
std::string input_error(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    return message;
  }
  ADD_FAILURE() << "no InputError";
  return {};
}

// Equal byte for byte: NaN is equal to itself, and every dtype can be compared.
inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.scalar_type() == right.scalar_type() && left.sizes() == right.sizes() &&
         (left.nbytes() == 0 ||
          std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0);
}

}  // namespace shardproof
