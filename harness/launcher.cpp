#include "harness/launcher.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "comm/threads/run_ranks.h"

namespace shardproof {
namespace {

class ThreadLauncher final : public Launcher {
 public:
  ThreadLauncher(int64_t most, std::function<void(const std::string&)> stuck)
      : most_(most), stuck_(std::move(stuck)) {}
  int64_t most() const override { return most_; }
  void run(int64_t ranks, const std::string&, const std::function<void(CommPtr)>& body) override {
    RunRanksOptions options;
    options.stuck = stuck_;
    run_ranks(static_cast<int>(ranks), body, options);
  }

 private:
  int64_t most_;
  std::function<void(const std::string&)> stuck_;
};

class ProcessLauncher final : public Launcher {
 public:
  explicit ProcessLauncher(CommPtr world) : world_(std::move(world)) {}
  int64_t most() const override { return world_->size(); }
  void run(int64_t ranks, const std::string& what,
           const std::function<void(CommPtr)>& body) override {
    SP_EXPECT(ranks <= world_->size(), "{} ranks were asked for, there are {}", ranks,
              world_->size());
    if (ranks == world_->size()) return body(world_);
    const bool works = world_->rank() < ranks;
    const CommPtr part = world_->split(works ? 0 : -1, world_->rank(), "part");
    if (world_->rank() == 0) world_->announce(kLongestWork, what);
    if (works) body(part);
    world_->barrier({"", what, "wait"}).wait();
  }

 private:
  CommPtr world_;
};

}  // namespace

std::unique_ptr<Launcher> make_thread_launcher(int64_t most,
                                               std::function<void(const std::string&)> stuck) {
  return std::make_unique<ThreadLauncher>(most, std::move(stuck));
}

std::unique_ptr<Launcher> make_process_launcher(CommPtr world) {
  return std::make_unique<ProcessLauncher>(std::move(world));
}

void on_first_rank(Communicator& world, const std::string& what,
                   const std::function<void()>& work) {
  const Site site{"", what, "wait"};
  const at::Tensor length = at::zeros({1}, at::kLong);
  std::string problem;
  std::exception_ptr thrown;
  if (world.rank() == 0) {
    world.announce(kLongestWork, what);
    try {
      work();
    } catch (const std::exception& error) {
      thrown = std::current_exception();
      problem = std::string(what) + ": " + error.what();
      length.fill_(static_cast<int64_t>(problem.size()));
    }
  }
  world.broadcast(length, 0, site).wait();
  if (length.item<int64_t>() == 0) return;
  const at::Tensor text = at::empty({length.item<int64_t>()}, at::kByte);
  std::copy(problem.begin(), problem.end(), text.mutable_data_ptr<uint8_t>());
  world.broadcast(text, 0, site).wait();
  if (thrown) std::rethrow_exception(thrown);
  const auto* bytes = text.const_data_ptr<uint8_t>();
  throw std::runtime_error(std::string(bytes, bytes + text.numel()));
}

}  // namespace shardproof
