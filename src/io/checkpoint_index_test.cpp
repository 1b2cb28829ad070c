#include "io/checkpoint_index.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include "io/safetensors_writer.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

class CheckpointTest : public IoTest {
 protected:
  // Files 1 (a, b) and 2 (c), and no index yet.
  void write_two_files() const {
    write_safetensors(directory() / "m-1.safetensors",
                      Named{{"a", at::arange(6, at::kFloat).view({3, 2})}, {"b", at::ones({2})}});
    write_safetensors(directory() / "m-2.safetensors", Named{{"c", at::arange(4, at::kLong)}});
  }

  std::filesystem::path write_index(std::string_view map) const {
    return put("model.safetensors.index.json",
               fmt::format(R"({{"metadata":{{"total_size":64}},"weight_map":{}}})", map));
  }

  // The message of the error, which must name the index.
  std::string error_with_map(std::string_view map) const {
    const auto index = write_index(map);
    const std::string message = input_error([&] { CheckpointFiles{directory()}; });
    EXPECT_TRUE(message.starts_with(index.string() + ": ")) << message;
    return message;
  }
};

constexpr std::string_view kGoodMap =
    R"({"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"})";

TEST_F(CheckpointTest, AnIndexMapsNamesToFiles) {
  write_two_files();
  write_index(kGoodMap);
  const CheckpointFiles files(directory());
  EXPECT_EQ(files.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(files.files().size(), 2u);
  EXPECT_EQ(files.entry("c").shape, std::vector<int64_t>{4});
  EXPECT_EQ(files.scalar_type("c"), at::kLong);
  EXPECT_TRUE(same_bytes(files.read("c"), at::arange(4, at::kLong)));
  EXPECT_EQ(files.bytes_read(), 32);
  const std::vector<int64_t> begin{1, 0}, size{2, 2};
  EXPECT_TRUE(
      same_bytes(files.read_box("a", begin, size), at::arange(2, 6, at::kFloat).view({2, 2})));
  EXPECT_EQ(files.bytes_read(), 32 + 16);
  EXPECT_NE(
      input_error([&] { files.read("d"); }).find("no file of the checkpoint has a tensor 'd'"),
      std::string::npos);
}

TEST_F(CheckpointTest, OneFileNeedsNoIndex) {
  const auto path = directory() / "model.safetensors";
  write_safetensors(path, Named{{"a", at::ones({2})}});
  write_index("{}");  // not looked at
  for (const auto& given : {directory(), path}) {
    const CheckpointFiles files(given);
    EXPECT_EQ(files.names(), std::vector<std::string>{"a"});
    EXPECT_EQ(files.read("a").sum().item<float>(), 2);
  }
}

TEST_F(CheckpointTest, TheIndexMayBeGivenItself) {
  write_two_files();
  EXPECT_EQ(CheckpointFiles(write_index(kGoodMap)).names().size(), 3u);
}

TEST_F(CheckpointTest, FilesMayLieInSubdirectories) {
  std::filesystem::create_directory(directory() / "sub");
  write_safetensors(directory() / "sub" / "m.safetensors",
                    Named{{"a", at::ones({2})}, {"b", at::ones({2})}});
  write_index(R"({"a":"sub/m.safetensors","b":"./sub//m.safetensors"})");
  EXPECT_EQ(CheckpointFiles(directory()).files().size(), 1u);
}

TEST_F(CheckpointTest, UnlistedTensorsCount) {
  write_two_files();
  write_index(R"({"a":"m-1.safetensors"})");
  EXPECT_EQ(CheckpointFiles(directory()).names(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(CheckpointTest, NothingFound) {
  EXPECT_EQ(
      input_error([&] { CheckpointFiles{directory()}; }),
      directory().string() + ": has neither model.safetensors nor model.safetensors.index.json");
  const auto absent = directory() / "absent";
  EXPECT_EQ(input_error([&] { CheckpointFiles{absent}; }),
            absent.string() + ": no such file or directory");
}

// Case 3: files or tensors that the index names and that are not there.
TEST_F(CheckpointTest, MissingFilesAreListed) {
  write_two_files();
  const std::string message = error_with_map(
      R"({"a":"m-1.safetensors","c":"m-3.safetensors","d":"m-4.safetensors","e":"m-3.safetensors"})");
  EXPECT_NE(message.find("2 file(s) that are not there: 'm-3.safetensors', 'm-4.safetensors'"),
            message.npos)
      << message;
  EXPECT_EQ(message.find("m-1"), message.npos) << message;
}

TEST_F(CheckpointTest, TensorsThatTheirFileLacksAreListed) {
  write_two_files();
  const std::string message =
      error_with_map(R"({"a":"m-1.safetensors","c":"m-1.safetensors","z":"m-2.safetensors"})");
  EXPECT_NE(message.find("'c' in 'm-1.safetensors', 'z' in 'm-2.safetensors'"), message.npos)
      << message;
}

TEST_F(CheckpointTest, ATensorInTwoFilesIsRefused) {
  write_two_files();
  write_safetensors(directory() / "m-2.safetensors",
                    Named{{"c", at::ones({1})}, {"a", at::ones({1})}});
  write_index(kGoodMap);
  const std::string message = input_error([&] { CheckpointFiles{directory()}; });
  EXPECT_NE(message.find("tensor 'a' is also in"), message.npos) << message;
  EXPECT_NE(message.find("m-1.safetensors"), message.npos) << message;
  EXPECT_NE(message.find("m-2.safetensors"), message.npos) << message;
}

TEST_F(CheckpointTest, DamagedFilesAreRefused) {
  write_two_files();
  write_index(kGoodMap);
  const auto second = directory() / "m-2.safetensors";
  std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1);
  const std::string message = input_error([&] { CheckpointFiles{directory()}; });
  EXPECT_TRUE(message.starts_with(second.string() + ": tensor 'c'")) << message;
}

TEST_F(CheckpointTest, FilesOutsideTheDirectoryAreRefused) {
  write_two_files();
  for (const char* file : {"/etc/m.safetensors", "../m.safetensors", "sub/../../m.safetensors",
                           "sub/..", R"(..\\m.safetensors)", R"(sub\\..\\..\\m.safetensors)",
                           R"(\\etc\\m)", R"(C:\\m)", R"(m-1.safetensors\u0000)"}) {
    const std::string message = error_with_map(fmt::format(R"({{"a":"{}"}})", file));
    EXPECT_NE(message.find("tensor 'a' is in"), message.npos) << message;
    EXPECT_NE(message.find("outside the directory"), message.npos) << message;
  }
  for (const char* file : {"", ".", "sub/"})
    EXPECT_NE(error_with_map(fmt::format(R"({{"a":"{}"}})", file)).find("not a file name"),
              std::string::npos);
}

TEST_F(CheckpointTest, MalformedIndexesAreRefused) {
  write_two_files();
  const auto error_for = [&](std::string_view text) {
    const auto index = put("model.safetensors.index.json", text);
    const std::string message = input_error([&] { CheckpointFiles{directory()}; });
    EXPECT_TRUE(message.starts_with(index.string() + ": ")) << message;
    return message;
  };
  for (const char* text : {"", "{", "nonsense", R"({"weight_map":{}} x)"})
    EXPECT_NE(error_for(text).find("is not JSON"), std::string::npos) << text;
  for (const char* text : {"[]", "{}", "3", R"({"metadata":{}})"})
    EXPECT_NE(error_for(text).find("no object \"weight_map\""), std::string::npos) << text;
  EXPECT_NE(error_for(R"({"weight_map":[]})").find("array instead"), std::string::npos);
  EXPECT_NE(error_for(R"({"weight_map":{}})").find("names no tensor"), std::string::npos);
  EXPECT_NE(error_for(R"({"weight_map":{"a":1}})").find("tensor 'a' is a JSON number"),
            std::string::npos);
  EXPECT_NE(error_for(R"({"weight_map":{"a":"m-1.safetensors","a":"m-2.safetensors"}})")
                .find("'a' twice"),
            std::string::npos);
  EXPECT_NE(error_for(R"({"metadata":)" + std::string(1'000'000, '[')).find("nested more than 32"),
            std::string::npos);
}

}  // namespace
}  // namespace shardproof
