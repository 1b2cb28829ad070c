// Helpers of this layer's tests: a module with any parameters, files with any tensors, random
// regions.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>

#include "base/error.h"
#include "checkpoint/load.h"
#include "io/safetensors_writer.h"
#include "nn/testing.h"

namespace shardproof::testing {

using Shape = std::vector<int64_t>;
using NamedList = std::vector<std::pair<std::string, at::Tensor>>;

// Parameters of these names and shapes, and nothing to compute.
class Bag final : public Module {
 public:
  explicit Bag(const std::vector<std::pair<std::string, Shape>>& parameters)
      : Module("Bag", {.inputs = {{"x"}}}) {
    for (const auto& [name, shape] : parameters)
      add_parameter(name, std::make_shared<Parameter>(shape, std::vector<Cut>(shape.size())));
    finish();
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override { return {{"output", inputs.at("x")}}; }
};

// Not a number, so that what is not written is seen.
inline void place(Parameter& parameter, const Region& region, at::ScalarType dtype) {
  const at::Tensor kept = at::full(local_shape(region), NAN, dtype);
  parameter.place(kept, region, kept.detach(), region);
}

// A file of the test's own, removed with it.
class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / fmt::format("shardproof_{}_{}_{}.safetensors",
                                                                 info->test_suite_name(),
                                                                 info->name(), getpid());
  }
  ~FileTest() override { std::filesystem::remove(path_); }

  CheckpointFiles write(const NamedList& tensors) {
    std::filesystem::remove(path_);
    write_safetensors(path_, tensors);
    return CheckpointFiles(path_);
  }

  // The message of the InputError that loading throws; it names the file.
  std::string refusal(Module& module, const NamedList& tensors, const WeightMap& map = {}) {
    const CheckpointFiles files = write(tensors);
    try {
      check_parameters(module, files, map);
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(path_.string()), message.npos) << message;
      EXPECT_EQ(files.bytes_read(), 0);
      return message;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  std::filesystem::path path_;
};

#define EXPECT_CONTAINS(text, part)                                                            \
  EXPECT_PRED2([](const std::string& t, const std::string& p) { return t.find(p) != t.npos; }, \
               text, part)

// Some of the positions of each dim, in any order; at times none.
inline Region random_region(const Shape& shape, std::mt19937& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Region region;
  for (const int64_t size : shape) {
    Intervals intervals;
    const int64_t kind = below(12);
    if (kind < 3) {
      intervals = {{0, size}};
    } else if (kind > 3) {  // 3: none
      for (int64_t at = below(size + 1); at < size;) {
        const int64_t end = at + 1 + below(size - at);
        intervals.push_back({at, end});
        at = end + 1 + below(size);
      }
      if (below(3) == 0) std::reverse(intervals.begin(), intervals.end());
    }
    region.push_back(normalized(intervals));
  }
  return region;
}

// uint8, any values.
inline at::Tensor bytes(const Shape& shape, std::mt19937& random, int low = 0, int high = 256) {
  at::Tensor result = at::empty(shape, at::kByte);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.mutable_data_ptr<uint8_t>()[i] =
        static_cast<uint8_t>(low + static_cast<int>(random() % static_cast<unsigned>(high - low)));
  return result;
}

// An MXFP4 pair for values of `shape` under "<name>_blocks" and "<name>_scales"; exponents are
// small.
inline NamedList mxfp4_pair(const std::string& name, Shape shape, std::mt19937& random) {
  shape.back() /= 32;
  const at::Tensor scales = bytes(shape, random, 118, 130);
  shape.push_back(16);
  return {{name + "_blocks", bytes(shape, random)}, {name + "_scales", scales}};
}

}  // namespace shardproof::testing
