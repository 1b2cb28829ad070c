#include "io/safetensors_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "io/safetensors_writer.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
using Dims = std::vector<int64_t>;

class SafetensorsFileTest : public IoTest {
 protected:
  std::filesystem::path write(const Named& tensors) const {
    const auto path = directory() / "t.safetensors";
    write_safetensors(path, tensors);
    return path;
  }

  // The bytes that reading the box took, after comparing it with the same part of `whole`.
  static int64_t read_and_compare(const SafetensorsFile& file, const at::Tensor& whole,
                                  const Dims& begin, const Dims& size) {
    const int64_t before = file.bytes_read();
    const at::Tensor box = file.read_box("w", begin, size);
    at::Tensor expected = whole;
    for (size_t dim = 0; dim < begin.size(); ++dim)
      expected = expected.narrow(static_cast<int64_t>(dim), begin[dim], size[dim]);
    EXPECT_TRUE(same_bytes(box, expected))
        << fmt::format("box [{}] + [{}]", fmt::join(begin, ","), fmt::join(size, ","));
    return file.bytes_read() - before;
  }
};

TEST_F(SafetensorsFileTest, EveryBoxOfATensorEqualsNarrow) {
  const at::Tensor whole = at::arange(3 * 4 * 5, at::kDouble).view({3, 4, 5});
  const SafetensorsFile file(write({{"before", at::ones({7})}, {"w", whole}}));
  int boxes = 0;
  for (int64_t a = 0; a <= 3; ++a)
    for (int64_t b = 0; b <= 4; ++b)
      for (int64_t c = 0; c <= 5; ++c)
        for (int64_t x = 0; x <= 3 - a; ++x)
          for (int64_t y = 0; y <= 4 - b; ++y)
            for (int64_t z = 0; z <= 5 - c; ++z, ++boxes)
              read_and_compare(file, whole, {a, b, c}, {x, y, z});
  EXPECT_EQ(boxes, 10 * 15 * 21);
}

TEST_F(SafetensorsFileTest, RowsReadOnlyTheirBytes) {
  const at::Tensor whole = at::arange(10 * 3, at::kBFloat16).view({10, 3});
  const SafetensorsFile file(write({{"w", whole}}));
  EXPECT_EQ(file.bytes_read(), 0);
  EXPECT_EQ(read_and_compare(file, whole, {4, 0}, {4, 3}), 4 * 3 * 2);
  EXPECT_EQ(read_and_compare(file, whole, {8, 0}, {2, 3}), 2 * 3 * 2);
  EXPECT_EQ(read_and_compare(file, whole, {10, 0}, {0, 3}), 0);
  EXPECT_EQ(read_and_compare(file, whole, {0, 3}, {10, 0}), 0);
}

TEST_F(SafetensorsFileTest, SmallGapsAreReadAlongAndLargeOnesNot) {
  // Rows of 80 bytes: 10 columns of each row, and all between the first and the last of them.
  const at::Tensor narrow = at::arange(6 * 20, at::kInt).view({6, 20});
  const SafetensorsFile small(write({{"w", narrow}}));
  EXPECT_EQ(read_and_compare(small, narrow, {1, 5}, {4, 10}), 3 * 80 + 40);

  // Rows of 24000 bytes: gaps of 23960.
  const at::Tensor wide = at::arange(5 * 6000, at::kInt).view({5, 6000});
  const SafetensorsFile large(write({{"w", wide}}));
  EXPECT_EQ(read_and_compare(large, wide, {1, 100}, {3, 10}), 3 * 40);
}

TEST_F(SafetensorsFileTest, BoxesLargerThanTheBufferAreReadInParts) {
  // 12 MB in rows of 4000 bytes with gaps of 400, and one run of 8 MB.
  const at::Tensor whole = at::arange(3000 * 1000, at::kInt).view({3000, 1000});
  const SafetensorsFile file(write({{"w", whole}}));
  const int64_t bytes = read_and_compare(file, whole, {0, 0}, {3000, 900});
  EXPECT_GE(bytes, int64_t{3000} * 900 * 4);
  EXPECT_LE(bytes, int64_t{3000} * 1000 * 4);
  EXPECT_EQ(read_and_compare(file, whole, {500, 0}, {2000, 1000}), 2000 * 1000 * 4);
}

TEST_F(SafetensorsFileTest, ReadsIntoGivenMemory) {
  const at::Tensor whole = at::arange(12, at::kFloat).view({4, 3});
  const SafetensorsFile file(write({{"w", whole}}));
  const at::Tensor rows = at::full({5, 3}, -1, at::kFloat);
  file.read_box_into("w", Dims{1, 0}, Dims{2, 3}, rows.narrow(0, 2, 2));
  EXPECT_TRUE(same_bytes(rows.narrow(0, 2, 2), whole.narrow(0, 1, 2)));
  EXPECT_EQ(rows.narrow(0, 0, 2).sum().item<float>(), -6);
  EXPECT_EQ(rows[4].sum().item<float>(), -3);

  const auto into = [&](const at::Tensor& out) {
    file.read_box_into("w", Dims{0, 0}, Dims{2, 3}, out);
  };
  EXPECT_THROW(into(at::empty({3, 2}, at::kFloat)), ContractError);
  EXPECT_THROW(into(at::empty({2, 3}, at::kDouble)), ContractError);
  EXPECT_THROW(into(at::empty({3, 2}, at::kFloat).t()), ContractError);
  EXPECT_THROW(file.read_box("w", Dims{3, 0}, Dims{2, 3}), ContractError);
}

TEST_F(SafetensorsFileTest, UnknownNamesSuggestTheNearest) {
  const auto path = write({{"model.norm.weight", at::ones({2})}});
  const SafetensorsFile file(path);
  EXPECT_EQ(input_error([&] { file.read("model.norm.weigth"); }),
            path.string() +
                ": has no tensor 'model.norm.weigth'; the nearest is "
                "'model.norm.weight'");
}

// Case 5: files of another length than their header says.
TEST_F(SafetensorsFileTest, CutFilesAreRefusedByName) {
  const std::string bytes =
      file_bytes(write({{"first", at::ones({4})}, {"last.of.all", at::ones({2000})}}));
  const auto error_for = [&](std::string_view changed) {
    const auto path = put("cut.safetensors", changed);
    const std::string message = input_error([&] { SafetensorsFile{path}; });
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    return message;
  };
  const std::string_view whole = bytes;
  for (const size_t cut : {size_t{1}, size_t{1024}, size_t{8000}})
    EXPECT_NE(error_for(whole.substr(0, whole.size() - cut)).find("tensor 'last.of.all'"),
              std::string::npos);
  EXPECT_NE(error_for(whole.substr(0, 60)).find("only 52 bytes follow"), std::string::npos);
  for (const size_t length : {0, 1, 5, 7})
    EXPECT_NE(error_for(whole.substr(0, length)).find("fewer than the 8"), std::string::npos);
  EXPECT_NE(error_for(whole.substr(0, 8)).find("only 0 bytes follow"), std::string::npos);
  for (const size_t junk : {1, 1024})
    EXPECT_NE(error_for(bytes + std::string(junk, 'j'))
                  .find(fmt::format("{} bytes behind its last tensor 'last.of.all'", junk)),
              std::string::npos);
}

TEST_F(SafetensorsFileTest, AFileCutAfterOpeningIsNoticed) {
  const auto path = write({{"w", at::ones({100})}});
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 200);
  EXPECT_EQ(file.read_box("w", Dims{0}, Dims{50}).sum().item<float>(), 50);
  const std::string message = input_error([&] { file.read("w"); });
  EXPECT_TRUE(message.starts_with(path.string() + ": ends at byte")) << message;
}

TEST_F(SafetensorsFileTest, BoolsAreZeroOrOne) {
  const auto path =
      put("b.safetensors", raw_file(R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                                    std::string_view("\0\1\2", 3)));
  const SafetensorsFile file(path);
  EXPECT_EQ(file.read_box("b", Dims{0}, Dims{2}).sum().item<int64_t>(), 1);
  EXPECT_NE(input_error([&] { file.read("b"); }).find("holds byte 2"), std::string::npos);
}

TEST_F(SafetensorsFileTest, TypesThatAtenLacksAreListedButNotRead) {
  const SafetensorsFile file(put(
      "f4.safetensors", raw_file(R"({"blocks":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]},)"
                                 R"("six":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[2,5]}})",
                                 "12345")));
  EXPECT_EQ(file.entry("blocks").dtype, FileDtype::kF4);
  EXPECT_EQ(file.entry("six").bytes(), 3);
  for (const char* name : {"blocks", "six"}) {
    const std::string message = input_error([&] { file.read(name); });
    EXPECT_NE(message.find("no element type"), message.npos) << message;
    EXPECT_NE(message.find(name), message.npos) << message;
  }
}

TEST_F(SafetensorsFileTest, OnlyRegularFilesAreOpened) {
  const auto absent = directory() / "absent.safetensors";
  EXPECT_TRUE(input_error([&] { SafetensorsFile{absent}; }).starts_with(absent.string()));
  EXPECT_NE(input_error([&] { SafetensorsFile{directory()}; }).find("not a regular file"),
            std::string::npos);
}

}  // namespace
}  // namespace shardproof
