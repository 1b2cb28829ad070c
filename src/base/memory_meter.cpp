#include "base/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"

namespace shardproof {
namespace {

// In front of each block; its size keeps the alignment that c10 gives and kernels rely on.
struct alignas(64) Header {
  int64_t bytes;
  int owner;
};
static_assert(sizeof(Header) == 64);

// A rank's counters, on a cache line of their own: ranks allocate at the same time.
struct alignas(64) Counter {
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
};

std::array<Counter, MemoryMeter::kMaxRanks> counters;
thread_local int thread_rank = 0;

void count(int owner, int64_t bytes) {
  Counter& counter = counters[static_cast<size_t>(owner)];
  const int64_t now = counter.current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = counter.peak.load(std::memory_order_relaxed);
  while (now > peak && !counter.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void free_block(void* data) {
  if (data == nullptr) return;
  void* block = static_cast<char*>(data) - sizeof(Header);
  const Header header = *static_cast<const Header*>(block);
  c10::free_cpu(block);
  count(header.owner, -header.bytes);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      void* block = c10::alloc_cpu(bytes + sizeof(Header));
      *static_cast<Header*>(block) = {static_cast<int64_t>(bytes), thread_rank};
      data = static_cast<char*>(block) + sizeof(Header);
      count(thread_rank, static_cast<int64_t>(bytes));
    }
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

size_t index_of(int rank) {
  SP_EXPECT(rank >= 0 && rank < MemoryMeter::kMaxRanks,
            "rank {} is not within [0, {}) of the memory meter", rank, MemoryMeter::kMaxRanks);
  return static_cast<size_t>(rank);
}

std::atomic<bool> is_installed{false};

}  // namespace

void MemoryMeter::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Lives as long as the process: tensors may be freed while it ends.
    static auto* allocator = new CountingAllocator;
    c10::SetAllocator(c10::DeviceType::CPU, allocator, 1);
    is_installed = true;
  });
}

bool MemoryMeter::installed() { return is_installed; }

void MemoryMeter::set_rank(int rank) {
  index_of(rank);
  thread_rank = rank;
}

int MemoryMeter::rank() { return thread_rank; }

int64_t MemoryMeter::current(int rank) { return counters[index_of(rank)].current; }

int64_t MemoryMeter::peak(int rank) { return counters[index_of(rank)].peak; }

void MemoryMeter::reset_peak(int rank) {
  Counter& counter = counters[index_of(rank)];
  counter.peak = counter.current.load();
}

}  // namespace shardproof
