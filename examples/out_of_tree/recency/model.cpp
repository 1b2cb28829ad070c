#include "recency/model.h"

#include <ATen/ATen.h>

namespace recency {

using namespace shardproof;

TokenMix::TokenMix(int64_t hidden) : Module("TokenMix", {.inputs = {{"hidden_states"}}}) {
  scale_ = add_parameter(
      "scale", std::make_shared<Parameter>(std::vector{hidden}, std::vector{Cut::plain(hidden)}));
}

InitialValues TokenMix::initial_values(const std::string&) const {
  return {InitialValues::Kind::kOnes};
}

NamedTensors TokenMix::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const at::Tensor counts = at::arange(1, x.size(1) + 1, x.options()).unsqueeze(1);
  return {{"output", x + scale_->view() * (x.cumsum(1) / counts)}};
}

Block::Block(const Config& config) : Module("Block", {.inputs = {{"hidden_states"}}}) {
  mix_ = add_child("mix", std::make_shared<TokenMix>(config.hidden_size));
  norm_ = add_child("norm", std::make_shared<RmsNorm>(config.hidden_size, 1e-6));
  mlp_ = add_child("mlp", std::make_shared<GatedMlp>(config.hidden_size, config.intermediate_size,
                                                     /*bias=*/true));
}

std::vector<Link> Block::links() const {
  return {{{"", "hidden_states"}, {"mix", "hidden_states"}},
          {{"mix", "output"}, {"norm", "hidden_states"}},
          {{"norm", "output"}, {"mlp", "hidden_states"}},
          {{"mlp", "output"}, {"", "output"}},
          {{"", "hidden_states"}, {"", "output"}}};
}

NamedTensors Block::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  return {{"output", x + (*mlp_)((*norm_)((*mix_)(x)))}};
}

Model::Model(const Config& config)
    : Module("Recency", {.inputs = {{"input_ids"}}, .outputs = {{"logits"}}}) {
  embed_ = add_child("embed", std::make_shared<Embedding>(EmbeddingOptions{
                                  .rows = config.vocab_size, .width = config.hidden_size}));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i)
    blocks_.push_back(add_child("blocks." + std::to_string(i), std::make_shared<Block>(config)));
  norm_ = add_child("norm", std::make_shared<RmsNorm>(config.hidden_size, 1e-6));
  head_ = add_child("head", std::make_shared<Linear>(
                                LinearOptions{.in = config.hidden_size, .out = config.vocab_size}));
  finish();
}

std::vector<Link> Model::links() const {
  std::vector<Link> links;
  LinkEnd x{"embed", "output"};
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const std::string block = "blocks." + std::to_string(i);
    links.push_back({x, {block, "hidden_states"}});
    x = {block, "output"};
  }
  links.push_back({x, {"norm", "hidden_states"}});
  links.push_back({{"norm", "output"}, {"head", "input"}});
  links.push_back({{"head", "output"}, {"", "logits"}});
  return links;
}

NamedTensors Model::forward(const NamedTensors& inputs) {
  at::Tensor x = (*embed_)(inputs.at("input_ids"));
  for (const auto& block : blocks_) x = (*block)(x);
  return {{"logits", (*head_)((*norm_)(x))}};
}

}  // namespace recency
