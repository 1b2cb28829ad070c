#include "parallel/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

constexpr int64_t kVocab = 10;

at::Tensor logits_of(at::ScalarType type) {
  return at::sin(at::arange(2 * 4 * kVocab, at::kDouble) * 1.7)
      .view({2, 4, kVocab})
      .mul(3)
      .to(type);
}
at::Tensor labels_of() {
  return at::tensor(std::vector<int64_t>{3, kIgnoredLabel, 0, 9, 5, 5, kIgnoredLabel, 1})
      .view({2, 4});
}

struct Result {
  double loss;
  at::Tensor grad;
};

Result whole(const LossOptions& options, at::ScalarType type) {
  const at::Tensor logits = logits_of(type).requires_grad_();
  const at::Tensor loss = cross_entropy_sum(logits, labels_of(), options) * 0.5;
  loss.backward();
  return {loss.item<double>(), logits.grad()};
}

// Each rank's loss is the whole one, its gradient the part of the whole one; ranks may hold
// nothing.
void expect_equal(int ranks, const Cut& cut, const LossOptions& options, at::ScalarType type,
                  double tolerance) {
  const Result truth = whole(options, type);
  run_ranks(ranks, [&](CommPtr world) {
    const AxisView axis{world, nullptr, world->size(), world->rank()};
    const Placement placement = shard(-1, cut);
    const at::Tensor whole_logits = logits_of(type);
    const Region all = whole_region(whole_logits.sizes().vec());
    Region mine = all;
    mine[2] = cut_intervals(cut, kVocab, axis.size, axis.coordinate);
    const at::Tensor logits = take(whole_logits, all, mine).requires_grad_();
    const at::Tensor loss =
        vocab_parallel_cross_entropy_sum(logits, labels_of(), placement, axis, options) * 0.5;
    loss.backward();
    EXPECT_NEAR(loss.item<double>(), truth.loss, tolerance * truth.loss) << ranks;
    EXPECT_LT((logits.grad() - take(truth.grad, all, mine)).norm().item<double>(),
              tolerance * truth.grad.norm().item<double>())
        << ranks << " ranks, rank " << world->rank();
  });
}

TEST(VocabParallelLoss, EqualsTheWholeLoss) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    for (const int ranks : {1, 2, 3, 4, 12}) {
      expect_equal(ranks, Cut::plain(kVocab), {smoothing}, at::kDouble, 1e-14);
      expect_equal(ranks, Cut::units(kVocab, 4), {smoothing}, at::kDouble, 1e-14);
    }
    expect_equal(3, Cut{{{4}, {6}}}, {smoothing}, at::kDouble, 1e-14);  // two intervals a rank
    expect_equal(3, Cut::plain(kVocab), {smoothing}, at::kFloat, 1e-6);
  }
}

// By hand: two tokens in three, logits 0, log 2, log 5 of a vocabulary of three.
TEST(VocabParallelLoss, SmoothsOverTheWholeVocabulary) {
  const at::Tensor all = at::tensor({0.0, std::log(2.0), std::log(5.0)}).view({1, 1, 3});
  run_ranks(2, [&](CommPtr world) {
    const AxisView axis{world, nullptr, 2, world->rank()};
    const at::Tensor mine = world->rank() == 0 ? all.narrow(2, 0, 2) : all.narrow(2, 2, 1);
    const double loss = vocab_parallel_cross_entropy_sum(mine, at::zeros({1, 1}, at::kLong),
                                                         shard(-1, Cut::plain(3)), axis, {0.3})
                            .item<double>();
    EXPECT_NEAR(loss, 0.7 * std::log(8.0) + 0.3 * (std::log(8.0) - std::log(10.0) / 3), 1e-14);
  });
}

TEST(VocabParallelLoss, WithoutAValidTokenIsZero) {
  run_ranks(2, [](CommPtr world) {
    const AxisView axis{world, nullptr, 2, world->rank()};
    const at::Tensor mine = logits_of(at::kDouble).narrow(2, world->rank() * 5, 5).requires_grad_();
    const at::Tensor loss = vocab_parallel_cross_entropy_sum(
        mine, at::full({2, 4}, kIgnoredLabel, at::kLong), shard(-1, Cut::plain(kVocab)), axis);
    loss.backward();
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_EQ(mine.grad().abs().sum().item<double>(), 0);
  });
}

// Logits that were gathered must not be summed over ranks again: refused, not wrong by log(tp).
TEST(VocabParallelLoss, RefusesWhatIsNotCutAsItIsTold) {
  run_ranks(2, [](CommPtr world) {
    const AxisView axis{world, nullptr, 2, world->rank()};
    const Placement cut = shard(-1, Cut::plain(kVocab));
    EXPECT_THROW(vocab_parallel_cross_entropy_sum(logits_of(at::kDouble), labels_of(), cut, axis),
                 ContractError);
    EXPECT_THROW(
        vocab_parallel_cross_entropy_sum(logits_of(at::kDouble), labels_of(), replicate(), axis),
        ContractError);
    const at::Tensor mine = logits_of(at::kDouble).narrow(2, 0, 5);
    EXPECT_THROW(vocab_parallel_cross_entropy_sum(mine, labels_of().fill_(10), cut, axis),
                 InputError);
  });
}

TEST(VocabParallelLoss, SendsOneAndTwoOrThreeNumbersAToken) {
  const auto recorder = std::make_shared<Recorder>();
  run_ranks(2, [&](CommPtr world) {
    const CommPtr seen = world->rank() == 0 ? record(world, recorder) : world;
    const AxisView axis{seen, nullptr, 2, world->rank()};
    for (const double smoothing : {0.0, 0.1}) {
      const at::Tensor mine =
          logits_of(at::kDouble).narrow(2, world->rank() * 5, 5).requires_grad_();
      vocab_parallel_cross_entropy_sum(mine, labels_of(), shard(-1, Cut::plain(kVocab)), axis,
                                       {smoothing})
          .backward();
    }
  });
  std::vector<int64_t> elements;
  for (const Record& one : recorder->records()) elements.push_back(one.elements);
  EXPECT_EQ(elements, (std::vector<int64_t>{8, 16, 8, 24}));
}

}  // namespace
}  // namespace shardproof
