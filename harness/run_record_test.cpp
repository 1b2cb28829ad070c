#include "harness/run_record.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/safetensors_writer.h"

namespace shardproof {
namespace {

class RecordTest : public testing::Test {
 protected:
  RecordTest() : folder_(std::filesystem::path(testing::TempDir()) / "shardproof_record_test") {
    std::filesystem::remove_all(folder_);
  }
  ~RecordTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

Value whole(ValueKey key, const at::Tensor& tensor) {
  return {std::move(key), tensor,
          [](const std::vector<int64_t>& shape) { return Part::own(whole_region(shape)); }};
}

TEST_F(RecordTest, GivesBackPartsOfWhatWasTaken) {
  const at::Tensor tensor = at::arange(24, at::kDouble).reshape({4, 6});
  RecordWriter writer(folder_);
  writer.take(whole({Kind::kParameter, "w", 2}, tensor));
  writer.finish({});

  const RunRecord record(folder_);

  const RecordEntry* entry = record.find({Kind::kParameter, "w", 2});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(record.find({Kind::kParameter, "w", 1}), nullptr);
  EXPECT_DOUBLE_EQ(entry->norm, tensor.norm().item<double>());
  const at::Tensor part = record.read(*entry, {{{3, 4}, {0, 1}}, {{4, 6}, {1, 2}}});
  EXPECT_TRUE(
      at::equal(part, at::tensor({22.0, 23.0, 19.0, 4.0, 5.0, 1.0}, at::kDouble).reshape({2, 3})));
  EXPECT_EQ(record.read(*entry, {{}, {{0, 6}}}).sizes(), (at::IntArrayRef{0, 6}));
}

TEST_F(RecordTest, KeepsValuesAsTheyWereWhenFlushed) {
  at::Tensor gradient = at::ones({3}, at::kDouble);
  RecordWriter writer(folder_);
  writer.take(whole({Kind::kGradient, "w", 0}, gradient));
  writer.flush();
  gradient.mul_(0.5);  // as clipping does
  writer.finish({});

  const RunRecord record(folder_);
  EXPECT_EQ(record.read(record.entries()[0], {{{0, 3}}}).sum().item<double>(), 3.0);
}

TEST_F(RecordTest, RefusesAPart) {
  RecordWriter writer(folder_);
  Value part = whole({Kind::kGradient, "w", 0}, at::ones({3}, at::kDouble));
  part.part = [](const std::vector<int64_t>&) { return Part::own({{{3, 6}}}); };
  EXPECT_THROW(writer.take(part), ContractError);
}

TEST_F(RecordTest, OrdersKindsStepsAndGradients) {
  RecordWriter writer(folder_);
  const at::Tensor one = at::ones({1}, at::kDouble);
  writer.take(whole({Kind::kParameter, "a", 2}, one));
  for (const int64_t step : {0, 1}) {
    writer.take(whole({Kind::kNorm, "norm", step}, one));
    writer.take(whole({Kind::kLoss, "loss", step}, one));
  }
  writer.take(whole({Kind::kGradient, "a", 0}, one));
  writer.take(whole({Kind::kGradient, "b", 0}, one));
  writer.take(whole({Kind::kOutput, "z", 0}, one));
  writer.finish({"b", "a"});

  std::vector<std::string> names;
  const RunRecord record(folder_);
  for (const RecordEntry& entry : record.entries()) names.push_back(entry.key.to_string());
  EXPECT_EQ(names, (std::vector<std::string>{"output of z, step 0", "loss of loss, step 0",
                                             "gradient of b, step 0", "gradient of a, step 0",
                                             "norm of norm, step 0", "loss of loss, step 1",
                                             "norm of norm, step 1", "parameter of a, step 2"}));
}

}  // namespace
}  // namespace shardproof
