#include "io/read_region.h"

#include <ATen/ATen.h>

#include "io/safetensors_writer.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

// Tensor w of 5 x 7: w[i][j] = 10 i + j; scalar s.
class ReadRegionTest : public IoTest {
 protected:
  ReadRegionTest() {
    w_ = 10 * at::arange(5, at::kFloat).unsqueeze(1) + at::arange(7, at::kFloat);
    const std::vector<std::pair<std::string, at::Tensor>> tensors = {{"w", w_},
                                                                     {"s", at::scalar_tensor(3.5)}};
    write_safetensors(directory() / "w.safetensors", tensors);
    file_.emplace(directory() / "w.safetensors");
  }

  at::Tensor w_;
  std::optional<SafetensorsFile> file_;
};

TEST_F(ReadRegionTest, BoxesStandInTheOrderOfTheRegion) {
  // Rows 3, 4, then 0; columns 5, 6, then 1.
  const Region region = {{{3, 5}, {0, 1}}, {{5, 7}, {1, 2}}};
  const at::Tensor read = read_region(*file_, "w", region);
  EXPECT_TRUE(read.is_contiguous());
  EXPECT_TRUE(same_bytes(
      read, at::tensor({35., 36., 31., 45., 46., 41., 5., 6., 1.}, at::kFloat).reshape({3, 3})));
}

TEST_F(ReadRegionTest, RowsAreReadAndNothingElse) {
  const int64_t before = file_->bytes_read();
  const at::Tensor read = read_region(*file_, "w", {{{1, 2}, {4, 5}}, {{0, 7}}});
  EXPECT_TRUE(same_bytes(read, w_.index_select(0, at::tensor({1, 4}))));
  EXPECT_EQ(file_->bytes_read() - before, 2 * 7 * 4);
}

TEST_F(ReadRegionTest, ConvertsIntoStridesAndDtypeOfTheTarget) {
  const at::Tensor around = at::full({4, 4}, -1, at::kDouble);
  const at::Tensor out = around.narrow(0, 1, 2).narrow(1, 1, 3).t();  // 3 x 2
  read_region_into(*file_, "w", {{{0, 1}, {2, 4}}, {{6, 7}, {3, 4}}}, out);
  const at::Tensor wanted = at::tensor({6., 3., 26., 23., 36., 33.}, at::kDouble).reshape({3, 2});
  EXPECT_TRUE(same_bytes(out, wanted));
  EXPECT_EQ(around.sum().item<double>(), wanted.sum().item<double>() - 10);  // the rest untouched
}

TEST_F(ReadRegionTest, EmptyRegionsAndScalars) {
  const int64_t before = file_->bytes_read();
  const at::Tensor none = read_region(*file_, "w", {{{1, 3}}, {}});
  EXPECT_EQ(none.sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(none.scalar_type(), at::kFloat);
  EXPECT_EQ(file_->bytes_read(), before);
  EXPECT_EQ(read_region(*file_, "s", {}).item<float>(), 3.5);
}

TEST_F(ReadRegionTest, RefusesOtherShapesAndPositionsOutside) {
  EXPECT_THROW(read_region_into(*file_, "w", {{{0, 2}}, {{0, 7}}}, at::empty({3, 7})),
               ContractError);
  EXPECT_THROW(read_region(*file_, "w", {{{4, 6}}, {{0, 7}}}), ContractError);
  EXPECT_THROW(read_region(*file_, "w", {{{0, 5}}}), ContractError);
}

}  // namespace
}  // namespace shardproof
