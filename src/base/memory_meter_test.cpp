#include "base/memory_meter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"

namespace shardproof {
namespace {

class MemoryMeterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MemoryMeter::install();
    MemoryMeter::set_rank(0);
    MemoryMeter::reset_peak();
    before_ = MemoryMeter::current();
  }
  int64_t held() const { return MemoryMeter::current() - before_; }
  int64_t peak() const { return MemoryMeter::peak() - before_; }

 private:
  int64_t before_ = 0;
};

TEST_F(MemoryMeterTest, CountsWhatTensorsHoldAndHeld) {
  {
    const at::Tensor a = at::empty({1000}, at::kDouble);
    EXPECT_EQ(held(), 8000);
    {
      const at::Tensor b = at::empty({7, 3}, at::kByte);
      EXPECT_EQ(held(), 8021);
    }
    EXPECT_EQ(held(), 8000);
  }

  EXPECT_EQ(held(), 0);
  EXPECT_EQ(peak(), 8021);
}

TEST_F(MemoryMeterTest, ResetPeakForgetsTheHighWaterMark) {
  { const at::Tensor a = at::empty({1000}, at::kDouble); }
  const at::Tensor b = at::empty({10}, at::kDouble);
  MemoryMeter::reset_peak();
  const at::Tensor c = at::empty({20}, at::kDouble);

  EXPECT_EQ(peak(), 240);
}

TEST_F(MemoryMeterTest, SeesResizes) {
  at::Tensor a = at::empty({10}, at::kDouble);
  a.resize_({100});

  EXPECT_EQ(held(), 800);
  EXPECT_EQ(peak(), 880);
}

TEST_F(MemoryMeterTest, EmptyTensorsHoldNothing) {
  const at::Tensor a = at::empty({0, 5}, at::kDouble);

  EXPECT_EQ(held(), 0);
}

TEST_F(MemoryMeterTest, BlocksBelongToTheRankThatAllocatedThem) {
  const int64_t before = MemoryMeter::current(3);
  at::Tensor made;
  std::thread([&] {
    MemoryMeter::set_rank(3);
    made = at::empty({100}, at::kDouble);
  }).join();

  EXPECT_EQ(MemoryMeter::current(3) - before, 800);
  EXPECT_EQ(held(), 0);
  made.reset();  // freed by rank 0
  EXPECT_EQ(MemoryMeter::current(3) - before, 0);
  EXPECT_EQ(held(), 0);
}

TEST_F(MemoryMeterTest, IsExactWithManyThreads) {
  std::vector<std::thread> threads;
  for (int rank = 10; rank < 14; ++rank)
    threads.emplace_back([rank] {
      MemoryMeter::set_rank(rank);
      for (int i = 0; i < 2000; ++i) at::empty({rank}, at::kByte);
    });
  for (std::thread& thread : threads) thread.join();

  for (int rank = 10; rank < 14; ++rank) {
    EXPECT_EQ(MemoryMeter::current(rank), 0);
    EXPECT_EQ(MemoryMeter::peak(rank), rank);
  }
}

TEST_F(MemoryMeterTest, KeepsTheAlignment) {
  for (int64_t size : {1, 3, 64, 1000}) {
    const at::Tensor a = at::empty({size}, at::kByte);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data_ptr()) % 64, 0U);
  }
}

TEST_F(MemoryMeterTest, InstallingAgainChangesNothing) {
  const at::Tensor a = at::empty({10}, at::kDouble);
  MemoryMeter::install();
  const at::Tensor b = at::empty({10}, at::kDouble);

  EXPECT_TRUE(MemoryMeter::installed());
  EXPECT_EQ(held(), 160);
}

TEST_F(MemoryMeterTest, RefusesRanksThatItHasNoCounterFor) {
  EXPECT_THROW(MemoryMeter::set_rank(-1), ContractError);
  EXPECT_THROW(MemoryMeter::set_rank(MemoryMeter::kMaxRanks), ContractError);
}

}  // namespace
}  // namespace shardproof
