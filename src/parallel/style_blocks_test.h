// Small blocks for the tests of styles: each takes "hidden_states" [batch, tokens, kHidden], gives
// "output" of the same shape, and calls its children with named inputs only.
#pragma once

#include <ATen/ATen.h>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/moe_block.h"
#include "nn/rms_norm.h"
#include "nn/split_linear.h"
#include "parallel/plan.h"

namespace shardproof::testing_blocks {

inline constexpr int64_t kVocab = 11, kHidden = 6, kHeads = 3, kHeadDim = 4;

inline std::shared_ptr<Linear> linear(int64_t in, int64_t out, Cut in_cut = {}, Cut out_cut = {}) {
  return std::make_shared<Linear>(LinearOptions{.in = in,
                                                .out = out,
                                                .bias = true,
                                                .in_cut = std::move(in_cut),
                                                .out_cut = std::move(out_cut)});
}

inline Cut by_head() { return Cut::units(kHeads * kHeadDim, kHeadDim); }

// What the blocks have in common.
class Block : public Module {
 public:
  explicit Block(std::string type) : Module(std::move(type), {.inputs = {{"hidden_states"}}}) {}

 protected:
  static at::Tensor call_linear(const std::shared_ptr<Linear>& module, const at::Tensor& x) {
    return only(module->call({}, {{"input", x}}));
  }
};

// second(tanh(first(x))), with features between that are cut as the two say.
class Pair final : public Block {
 public:
  explicit Pair(const Cut& cut) : Pair(cut, cut) {}
  Pair(const Cut& given, const Cut& taken) : Block("Pair") {
    first_ = add_child("first", linear(kHidden, given.width(), {}, given));
    second_ = add_child("second", linear(taken.width(), kHidden, taken, {}));
  }
  std::vector<Link> links() const override {
    return {{{"", "hidden_states"}, {"first", "input"}},
            {{"first", "output"}, {"second", "input"}},
            {{"second", "output"}, {"", "output"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor x = call_linear(first_, inputs.at("hidden_states"));
    return {{"output", call_linear(second_, at::tanh(x))}};
  }

 private:
  std::shared_ptr<Linear> first_, second_;
};

// Heads with a norm each, and a bare parameter [heads] that scales them.
class Heads final : public Block {
 public:
  Heads() : Block("Heads") {
    up_ = add_child("up", linear(kHidden, kHeads * kHeadDim, {}, by_head()));
    norm_ = add_child("norm", std::make_shared<RmsNorm>(kHeadDim, 1e-6));
    down_ = add_child("down", linear(kHeads * kHeadDim, kHidden, by_head(), {}));
    sinks_ = add_parameter(
        "sinks", std::make_shared<Parameter>(std::vector{kHeads}, std::vector{Cut::plain(kHeads)}));
  }
  std::vector<Link> links() const override {
    return {{{"", "hidden_states"}, {"up", "input"}},
            {{"up", "output"}, {"norm", "hidden_states"}},
            {{"norm", "output"}, {"down", "input"}},
            {{"down", "output"}, {"", "output"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor x = call_linear(up_, inputs.at("hidden_states"));
    std::vector<int64_t> by_head = x.sizes().vec();
    by_head.back() = sinks_->view().size(0);
    by_head.push_back(kHeadDim);
    const at::Tensor normed = only(norm_->call({}, {{"hidden_states", x.reshape(by_head)}}));
    const at::Tensor scaled = normed * sinks_->view().unsqueeze(-1);
    return {{"output", call_linear(down_, scaled.reshape(x.sizes()))}};
  }

 private:
  std::shared_ptr<Linear> up_, down_;
  std::shared_ptr<RmsNorm> norm_;
  ParamPtr sinks_;
};

// The shape of multi-head latent attention: a compressed part goes through a norm and a projection
// to the heads, a rope part to every head directly.
class Latent final : public Block {
 public:
  Latent() : Block("Latent") {
    a_ = add_child("kv_a", std::make_shared<SplitLinear>(SplitLinearOptions{
                               .in = kHidden, .compressed = 5, .rope = kHeadDim, .bias = true}));
    norm_ = add_child("norm", std::make_shared<RmsNorm>(5, 1e-6));
    b_ = add_child("kv_b", linear(5, kHeads * kHeadDim, {}, by_head()));
    o_ = add_child("o", linear(kHeads * kHeadDim, kHidden, by_head(), {}));
  }
  std::vector<Link> links() const override {
    return {{{"", "hidden_states"}, {"kv_a", "input"}},
            {{"kv_a", "compressed"}, {"norm", "hidden_states"}},
            {{"norm", "output"}, {"kv_b", "input"}},
            {{"kv_b", "output"}, {"o", "input"}},
            {.from = {"kv_a", "rope"}, .to = {"kv_b", "output"}, .to_heads = true},
            {{"o", "output"}, {"", "output"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const NamedTensors parts = a_->call({}, {{"input", inputs.at("hidden_states")}});
    const at::Tensor normed = only(norm_->call({}, {{"hidden_states", parts.at("compressed")}}));
    const at::Tensor x = call_linear(b_, normed);
    std::vector<int64_t> by_head = x.sizes().vec();
    by_head.back() /= kHeadDim;
    by_head.push_back(kHeadDim);
    const at::Tensor turned = x.reshape(by_head) * parts.at("rope").unsqueeze(-2);
    return {{"output", call_linear(o_, turned.reshape(x.sizes()))}};
  }

 private:
  std::shared_ptr<SplitLinear> a_;
  std::shared_ptr<RmsNorm> norm_;
  std::shared_ptr<Linear> b_, o_;
};

// tanh(x up^T) down^T from bare parameters: an addend of the output where they are cut.
class Bare final : public Block {
 public:
  static constexpr int64_t kWidth = 5;
  Bare() : Block("Bare") {
    up_ = add_parameter(
        "up", std::make_shared<Parameter>(std::vector{kWidth, kHidden},
                                          std::vector{Cut::plain(kWidth), Cut::plain(kHidden)}));
    down_ = add_parameter(
        "down", std::make_shared<Parameter>(std::vector{kHidden, kWidth},
                                            std::vector{Cut::plain(kHidden), Cut::plain(kWidth)}));
  }

 protected:
  // The stream's gradient does not pass: all_reduce sums outputs only.
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor x = inputs.at("hidden_states").detach();
    return {{"output", at::linear(at::tanh(at::linear(x, up_->view())), down_->view())}};
  }

 private:
  ParamPtr up_, down_;
};

// Experts of which one is the identity: x + weight * tanh(x up^T) down^T, all tokens going to both.
class IdentityExperts final : public Module {
 public:
  IdentityExperts()
      : Module("Experts", {.inputs = {{"hidden_states"}, {"top_k_index"}, {"top_k_weights"}}}) {
    identity_ = add_child("identity", std::make_shared<Identity>());
    up_ = add_parameter(
        "up", std::make_shared<Parameter>(std::vector<int64_t>{5, kHidden},
                                          std::vector{Cut::plain(5), Cut::plain(kHidden)}));
    down_ = add_parameter(
        "down", std::make_shared<Parameter>(std::vector<int64_t>{kHidden, 5},
                                            std::vector{Cut::plain(kHidden), Cut::plain(5)}));
  }
  std::vector<Link> links() const override {
    return {{{"", "hidden_states"}, {"identity", "hidden_states"}},
            {{"identity", "output"}, {"", "output"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor& x = inputs.at("hidden_states");
    const at::Tensor same = only(identity_->call({}, {{"hidden_states", x}}));
    const at::Tensor other = at::linear(at::tanh(at::linear(x, up_->view())), down_->view());
    return {{"output", same + other * inputs.at("top_k_weights")}};
  }

 private:
  struct Identity final : Module {
    Identity() : Module("Identity", {.inputs = {{"hidden_states"}}}) {}
    NamedTensors forward(const NamedTensors& inputs) override {
      return {{"output", inputs.at("hidden_states")}};
    }
  };
  std::shared_ptr<Module> identity_;
  ParamPtr up_, down_;
};

class WithIdentityExpert final : public Block {
 public:
  WithIdentityExpert() : Block("WithIdentityExpert") {
    experts_ = add_child("experts", std::make_shared<IdentityExperts>());
  }
  std::vector<Link> links() const override {
    return {{{"", "hidden_states"}, {"experts", "hidden_states"}},
            {{"experts", "output"}, {"", "output"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor& x = inputs.at("hidden_states");
    const at::Tensor routes = at::zeros({x.size(0), x.size(1), 1}, at::kLong);
    return {{"output", only(experts_->call({}, {{"hidden_states", x},
                                                {"top_k_index", routes},
                                                {"top_k_weights", x.mean(-1, true)}}))}};
  }

 private:
  std::shared_ptr<Module> experts_;
};

// Five experts of an odd width, two a token.
inline std::shared_ptr<Module> make_moe(bool interleaved) {
  MoeOptions options;
  options.router = {.hidden = kHidden, .experts = 5, .top_k = 2, .bias = true, .normalize = true};
  options.experts = {.count = 5, .hidden = kHidden, .width = 7, .bias = true};
  if (interleaved) {
    options.experts.packing = ExpertsOptions::Packing::kInterleaved;
    options.experts.order = ExpertsOptions::Order::kInOut;
  }
  return std::make_shared<MoeBlock>(options);
}

// Embedding, norm, block around a residual, norm, head.
class Probe final : public Module {
 public:
  explicit Probe(std::shared_ptr<Module> block)
      : Module("Probe", {.inputs = {{"input_ids"}}, .outputs = {{"logits"}}}) {
    embed_ = add_child(
        "embed", std::make_shared<Embedding>(EmbeddingOptions{.rows = kVocab, .width = kHidden}));
    norm_ = add_child("norm", std::make_shared<RmsNorm>(kHidden, 1e-6));
    block_ = add_child("block", std::move(block));
    last_ = add_child("last", std::make_shared<RmsNorm>(kHidden, 1e-6));
    head_ = add_child("head", linear(kHidden, kVocab));
    finish();
  }
  std::vector<Link> links() const override {
    return {{{"embed", "output"}, {"norm", "hidden_states"}},
            {{"norm", "output"}, {"block", "hidden_states"}},
            {{"block", "output"}, {"last", "hidden_states"}},
            {{"embed", "output"}, {"last", "hidden_states"}},
            {{"last", "output"}, {"head", "input"}},
            {{"head", "output"}, {"", "logits"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    const at::Tensor x = only(embed_->call({}, {{"input_ids", inputs.at("input_ids")}}));
    const at::Tensor normed = only(norm_->call({}, {{"hidden_states", x}}));
    const at::Tensor y = x + only(block_->call({}, {{"hidden_states", normed}}));
    const at::Tensor last = only(last_->call({}, {{"hidden_states", y}}));
    return {{"logits", only(head_->call({}, {{"input", last}}))}};
  }

 private:
  std::shared_ptr<Module> embed_, norm_, block_, last_, head_;
};

}  // namespace shardproof::testing_blocks
