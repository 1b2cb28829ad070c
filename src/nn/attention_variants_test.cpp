// What families vary in attention: packed projections, norms of heads, scale, outputs that were
// gathered before they are used.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "nn/attention.h"
#include "nn/rotary.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

using testing::relative_error;
using testing::values;
using testing::Whole;
using Projections = AttentionOptions::Projections;

constexpr int64_t kHidden = 10;
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 5;
constexpr AttentionHeads kHeads = {.queries = 6, .keys = 2, .head_dim = 4};

NamedTensors inputs() {
  RotaryEmbedding rotary({.dim = kHeads.head_dim, .theta = 50.0});
  NamedTensors inputs =
      rotary.call({at::zeros({1}, at::kDouble), at::arange(kLength, at::kLong).unsqueeze(0)});
  inputs.set("hidden_states", values({kBatch, kLength, kHidden}, 40).requires_grad_());
  return inputs;
}

std::unique_ptr<Attention> make(const AttentionOptions& options) {
  auto attention = std::make_unique<Attention>(options);
  attention->finish();
  return attention;
}

// Parameters cut as the model states; o_proj's bias on rank 0 only.
void place(Attention& attention, Whole whole, int64_t ranks, int64_t rank) {
  if (rank > 0 && whole.contains("o_proj.bias")) whole["o_proj.bias"].zero_();
  testing::place(attention, whole, [&](const Parameter& parameter) {
    Region region = whole_region(parameter.shape());
    const bool kept =
        parameter.name() == "o_proj.bias" || parameter.name().ends_with("norm.weight");
    if (kept) return region;
    const size_t dim = parameter.name() == "o_proj.weight" ? 1 : 0;
    region[dim] = cut_intervals(parameter.cut(dim), parameter.shape()[dim], ranks, rank);
    return region;
  });
}

Whole packed_from(const Whole& separate) {
  Whole packed = separate;
  for (const char* kind : {"weight", "bias"}) {
    std::vector<at::Tensor> parts;
    for (const char* name : {"q_proj.", "k_proj.", "v_proj."}) {
      parts.push_back(packed.at(std::string(name) + kind));
      packed.erase(std::string(name) + kind);
    }
    packed[std::string("qkv_proj.") + kind] = at::cat(parts);
  }
  return packed;
}

TEST(AttentionVariants, PackedIsSeparateWithTheSameWeightsOnAnyNumberOfRanks) {
  const AttentionOptions options = {.hidden = kHidden,
                                    .heads = kHeads,
                                    .qkv_bias = true,
                                    .output_bias = true,
                                    .head_norm = RmsNormOptions{}};
  AttentionOptions packed_options = options;
  packed_options.projections = Projections::kPacked;
  const Whole whole = testing::whole_values(*make(options));
  for (const int64_t ranks : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto separate = make(options);
      place(*separate, whole, ranks, rank);
      const auto packed = make(packed_options);
      place(*packed, packed_from(whole), ranks, rank);
      const at::Tensor truth = Module::only(separate->call({}, inputs()));
      const at::Tensor output = Module::only(packed->call({}, inputs()));
      EXPECT_TRUE(at::allclose(output, truth, 1e-13, 1e-13)) << rank;
      output.sum().backward();
      for (const ParamPtr& parameter : packed->all_parameters())
        EXPECT_TRUE(parameter->view().grad().defined()) << parameter->name() << " is not reached";
      const auto cache = packed->make_cache(kBatch, kLength);
      EXPECT_EQ(cache->bytes(), separate->make_cache(kBatch, kLength)->bytes());
    }
  }
}

TEST(AttentionVariants, HeadsAreNormedBeforeTheyAreTurnedAndScoresScaled) {
  const double scale = 0.3;
  const auto attention = make({.hidden = kHidden,
                               .heads = kHeads,
                               .scale = scale,
                               .head_norm = RmsNormOptions{.eps = 1e-3}});
  const Whole whole = testing::whole_values(*attention);
  testing::place_whole(*attention, whole);
  const NamedTensors given = inputs();
  const auto project = [&](const std::string& name, int64_t count) {
    return at::matmul(given.at("hidden_states"), whole.at(name + "_proj.weight").t())
        .view({kBatch, kLength, count, kHeads.head_dim})
        .transpose(1, 2);
  };
  const auto normed = [&](const std::string& name, int64_t count) {
    const at::Tensor x = project(name, count);
    const at::Tensor mean_square = x.pow(2).mean(-1, true);
    return rotate(x / at::sqrt(mean_square + 1e-3) * whole.at(name + "_norm.weight"),
                  given.at("cos"), given.at("sin"));
  };
  const at::Tensor key = normed("k", 2).repeat_interleave(3, 1);
  const at::Tensor value = project("v", 2).repeat_interleave(3, 1);
  const at::Tensor future = at::ones({kLength, kLength}, at::kBool).triu(1);
  const at::Tensor scores =
      (at::matmul(normed("q", 6), key.transpose(2, 3)) * scale).masked_fill(future, -INFINITY);
  const at::Tensor joined =
      at::matmul(at::softmax(scores, -1), value).transpose(1, 2).reshape({kBatch, kLength, 24});
  const at::Tensor truth = at::matmul(joined, whole.at("o_proj.weight").t());

  EXPECT_LT(relative_error(Module::only(attention->call({}, given)), truth), 1e-13);
}

// Stands for an edge that gathers a projection's output, or splits o_proj's input.
class Replace final : public ModuleHook {
 public:
  explicit Replace(std::function<at::Tensor(const at::Tensor&)> output) : output_(output) {}
  void after(Module&, NamedTensors& outputs) override {
    outputs.at("output") = output_(outputs.at("output"));
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> output_;
};

// A plan may gather what a packed projection gives: transformers' own plan of Phi 3 does.
TEST(AttentionVariants, WhereAnOutputWasGatheredAllHeadsAreLocal) {
  for (const Projections projections : {Projections::kSeparate, Projections::kPacked}) {
    const AttentionOptions options = {
        .hidden = kHidden, .heads = kHeads, .projections = projections};
    const auto whole_model = make(options);
    const Whole whole = testing::whole_values(*whole_model);
    testing::place_whole(*whole_model, whole);
    const NamedTensors given = inputs();
    const at::Tensor truth = Module::only(whole_model->call({}, given)).detach();

    const auto attention = make(options);
    testing::place(*attention, whole, [&](const Parameter& parameter) {
      Region region = whole_region(parameter.shape());
      if (parameter.name() != "o_proj.weight")
        region[0] = cut_intervals(parameter.cut(0), parameter.shape()[0], 2, 1);
      return region;
    });
    for (const auto& [name, child] : attention->children()) {
      if (name == "o_proj") continue;
      const at::Tensor weight = whole.at(name + ".weight");
      child->add_hook(std::make_shared<Replace>([weight, &given](const at::Tensor&) {
        return at::matmul(given.at("hidden_states"), weight.t());
      }));
    }
    EXPECT_LT(relative_error(Module::only(attention->call({}, given)).detach(), truth), 1e-13);

    const at::NoGradGuard no_grad;  // the cache was made for the heads that are held
    attention->set_cache(attention->make_cache(kBatch, kLength));
    EXPECT_LT(relative_error(Module::only(attention->call({}, given)), truth), 1e-13);
    EXPECT_EQ(attention->cached(), kLength);
  }
}

TEST(AttentionVariants, OtherWidthsAreRefusedByName) {
  for (const Projections projections : {Projections::kSeparate, Projections::kPacked}) {
    const auto attention = make({.hidden = kHidden, .heads = kHeads, .projections = projections});
    testing::place_whole(*attention, testing::whole_values(*attention));
    const auto& [name, first] = attention->children().front();
    first->add_hook(std::make_shared<Replace>(
        [](const at::Tensor& output) { return output.narrow(-1, 0, kHeads.head_dim); }));
    try {
      attention->call({}, inputs());
      FAIL() << "nothing was thrown";
    } catch (const ContractError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace shardproof
