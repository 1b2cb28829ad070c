#include "models/end_tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/check.h"

namespace shardproof {
namespace {

class EndTokens : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const char* name, const char* text) { std::ofstream(directory_ / name) << text; }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / fmt::format("shardproof_end_tokens_{}", getpid());
};

using Tokens = std::vector<int64_t>;

TEST_F(EndTokens, GenerationConfigGoesBeforeConfig) {
  EXPECT_EQ(read_end_tokens(directory_), Tokens{});
  write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(read_end_tokens(directory_), Tokens{7});
  write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_EQ(read_end_tokens(directory_), Tokens{7});
  write("generation_config.json", R"({"eos_token_id": [3, 5]})");
  EXPECT_EQ(read_end_tokens(directory_), (Tokens{3, 5}));
}

TEST_F(EndTokens, SomethingElseIsRefused) {
  for (const char* wrong :
       {R"({"eos_token_id": "</s>"})", R"({"eos_token_id": [3, "x"]})", "no JSON"}) {
    write("config.json", wrong);
    EXPECT_THROW(read_end_tokens(directory_), InputError) << wrong;
  }
}

}  // namespace
}  // namespace shardproof
