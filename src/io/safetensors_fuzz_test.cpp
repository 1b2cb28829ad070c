// Random damage to a small valid file: refused, or read; never anything else.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <random>

#include "io/safetensors_file.h"
#include "io/safetensors_writer.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

constexpr int kRounds = 6000;

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  std::string operator()(std::string bytes) {
    const int edits = 1 + below(3);
    for (int i = 0; i < edits; ++i) edit(bytes);
    return bytes;
  }

 private:
  int below(size_t bound) { return static_cast<int>(random_() % bound); }

  void edit(std::string& bytes) {
    if (bytes.empty()) return;
    const auto at = static_cast<size_t>(below(bytes.size()));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, 1, "0123456789[]{}:,\"-e"[below(19)]);
        break;
      case 4:
        bytes.erase(at, 1);
        break;
      // In the header only, where digits, brackets and quotes change what is claimed.
      case 5:
        bytes[8 + at % 200 < bytes.size() ? 8 + at % 200 : at] = "0123456789[]{}:,\"-e"[below(19)];
    }
  }

  std::mt19937 random_;
};

TEST_F(IoTest, DamagedFilesAreRefusedOrRead) {
  const auto good = directory() / "good.safetensors";
  write_safetensors(good, std::vector<std::pair<std::string, at::Tensor>>{
                              {"a.weight", at::arange(6, at::kFloat).view({2, 3})},
                              {"b", at::arange(3, at::kLong)},
                              {"flag", at::zeros({5}, at::kBool)},
                              {"none", at::zeros({0, 4}, at::kBFloat16)}});
  const std::string bytes = file_bytes(good);
  Damage damage(20240611);
  int refused = 0, opened = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto path = put("damaged.safetensors", damage(bytes));
    try {
      const SafetensorsFile file(path);
      ++opened;
      for (const TensorEntry& entry : file.entries())
        if (scalar_type_of(entry.dtype)) file.read(entry.name);
    } catch (const InputError& error) {
      ++refused;
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    }
  }
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_GT(opened, kRounds / 50);  // damage to values alone cannot be seen
}

}  // namespace
}  // namespace shardproof
