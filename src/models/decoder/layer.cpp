#include "models/decoder/layer.h"

#include <ATen/core/Tensor.h>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr const char* kInputNorm = "input_layernorm";
constexpr const char* kPostAttentionNorm = "post_attention_layernorm";
constexpr const char* kPreMlpNorm = "pre_feedforward_layernorm";
constexpr const char* kPostMlpNorm = "post_feedforward_layernorm";

std::shared_ptr<Module> make_moe(const DecoderOptions& options) {
  SP_EXPECT(options.moe.has_value(), "a layer is sparse, but there are no experts");
  MoeOptions moe = *options.moe;
  moe.router.hidden = options.hidden_size;
  moe.experts.hidden = options.hidden_size;
  if (moe.shared) moe.shared->hidden = options.hidden_size;
  return std::make_shared<MoeBlock>(moe);
}

std::shared_ptr<Module> make_mlp(const DecoderOptions& options, const DecoderLayerOptions& layer) {
  if (layer.sparse) return make_moe(options);
  GatedMlpOptions mlp = options.mlp;
  mlp.hidden = options.hidden_size;
  if (options.mlp_projections == DecoderOptions::MlpProjections::kPacked)
    return std::make_shared<PackedGatedMlp>(mlp);
  return std::make_shared<GatedMlp>(mlp);
}

}  // namespace

DecoderLayer::DecoderLayer(const DecoderOptions& options, const DecoderLayerOptions& layer)
    : Module("DecoderLayer",
             {.inputs = {{"hidden_states"}, {"cos"}, {"sin"}, {"mask", /*required=*/false}}}) {
  const auto add_norm = [&](const char* name) {
    RmsNormOptions norm = options.norm;
    norm.width = options.hidden_size;
    return add_child(name, std::make_shared<RmsNorm>(norm));
  };
  const bool around = options.block_norms == DecoderOptions::BlockNorms::kAround;
  before_attention_ = add_norm(kInputNorm);
  add_attention(options);
  if (around) {
    after_attention_ = add_norm(kPostAttentionNorm);
    before_mlp_ = add_norm(kPreMlpNorm);
  } else {
    before_mlp_ = add_norm(kPostAttentionNorm);
  }
  mlp_ = add_child("mlp", make_mlp(options, layer));
  if (around) after_mlp_ = add_norm(kPostMlpNorm);
}

void DecoderLayer::add_attention(const DecoderOptions& options) {
  const auto add = [&]<class A>(std::shared_ptr<A> attention) {
    attention_ = add_child("self_attn", attention);
    cached_tokens_ = [holder = attention.get()] { return holder->cached(); };
  };
  if (options.latent_attention) {
    LatentAttentionOptions attention = *options.latent_attention;
    attention.hidden = options.hidden_size;
    add(std::make_shared<LatentAttention>(attention));
  } else {
    AttentionOptions attention = options.attention;
    attention.hidden = options.hidden_size;
    add(std::make_shared<Attention>(attention));
  }
}

std::vector<Link> DecoderLayer::links() const {
  const std::string before_mlp = after_attention_ ? kPreMlpNorm : kPostAttentionNorm;
  std::vector<Link> links = {{{"", "hidden_states"}, {kInputNorm, "hidden_states"}},
                             {{kInputNorm, "output"}, {"self_attn", "hidden_states"}}};
  // What is added to the residual stream: it goes on to the next norm and to the output.
  std::vector<LinkEnd> stream = {{"", "hidden_states"}};
  const auto add = [&](const char* block, const std::shared_ptr<RmsNorm>& norm, const char* name) {
    if (norm) links.push_back({{block, "output"}, {name, "hidden_states"}});
    stream.push_back({norm ? name : block, "output"});
  };
  add("self_attn", after_attention_, kPostAttentionNorm);
  for (const LinkEnd& addend : stream) links.push_back({addend, {before_mlp, "hidden_states"}});
  links.push_back({{before_mlp, "output"}, {"mlp", "hidden_states"}});
  add("mlp", after_mlp_, kPostMlpNorm);
  for (const LinkEnd& addend : stream) links.push_back({addend, {"", "output"}});
  return links;
}

NamedTensors DecoderLayer::forward(const NamedTensors& inputs) {
  at::Tensor x = inputs.at("hidden_states");
  at::Tensor attended = only(attention_->call({}, {{"hidden_states", (*before_attention_)(x)},
                                                   {"cos", inputs.at("cos")},
                                                   {"sin", inputs.at("sin")},
                                                   {"mask", inputs.get("mask")}}));
  if (after_attention_) attended = (*after_attention_)(attended);
  x = x + attended;
  at::Tensor added = (*mlp_)((*before_mlp_)(x));
  if (after_mlp_) added = (*after_mlp_)(added);
  return {{"output", x + added}};
}

}  // namespace shardproof
