#include "models/llama/model.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "nn/padding.h"

namespace shardproof {

LlamaDecoderLayer::LlamaDecoderLayer(const LlamaConfig& config)
    : Module("LlamaDecoderLayer",
             {.inputs = {{"hidden_states"}, {"cos"}, {"sin"}, {"mask", /*required=*/false}}}) {
  input_norm_ = add_child("input_layernorm",
                          std::make_shared<RmsNorm>(config.hidden_size, config.rms_norm_eps));
  attention_ = add_child("self_attn", std::make_shared<Attention>(AttentionOptions{
                                          .hidden = config.hidden_size,
                                          .heads = {.queries = config.num_attention_heads,
                                                    .keys = config.num_key_value_heads,
                                                    .head_dim = config.head_dim},
                                          .bias = config.attention_bias}));
  post_attention_norm_ =
      add_child("post_attention_layernorm",
                std::make_shared<RmsNorm>(config.hidden_size, config.rms_norm_eps));
  mlp_ = add_child("mlp", std::make_shared<GatedMlp>(config.hidden_size, config.intermediate_size,
                                                     config.mlp_bias));
}

NamedTensors LlamaDecoderLayer::forward(const NamedTensors& inputs) {
  at::Tensor x = inputs.at("hidden_states");
  const at::Tensor normed = only(input_norm_->call({}, {{"hidden_states", x}}));
  x = x + only(attention_->call({}, {{"hidden_states", normed},
                                     {"cos", inputs.at("cos")},
                                     {"sin", inputs.at("sin")},
                                     {"mask", inputs.get("mask")}}));
  const at::Tensor normed_again = only(post_attention_norm_->call({}, {{"hidden_states", x}}));
  return {{"output", x + only(mlp_->call({}, {{"hidden_states", normed_again}}))}};
}

LlamaModel::LlamaModel(const LlamaConfig& config)
    : Module("LlamaModel", {.inputs = {{"input_ids"},
                                       {"position_ids", /*required=*/false},
                                       {"attention_mask", /*required=*/false}},
                            .outputs = {{"last_hidden_state"}}}) {
  embedding_ =
      add_child("embed_tokens",
                std::make_shared<Embedding>(EmbeddingOptions{.rows = config.vocab_size,
                                                             .width = config.hidden_size,
                                                             .padding_row = config.pad_token_id}));
  rotary_ = add_child("rotary_emb", std::make_shared<RotaryEmbedding>(config.rope));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(
        add_child(fmt::format("layers.{}", i), std::make_shared<LlamaDecoderLayer>(config)));
  }
  norm_ = add_child("norm", std::make_shared<RmsNorm>(config.hidden_size, config.rms_norm_eps));
}

NamedTensors LlamaModel::forward(const NamedTensors& inputs) {
  const at::Tensor& ids = inputs.at("input_ids");
  SP_EXPECT(ids.dim() == 2, "{}: input_ids must be [batch, length], not {}", label(),
            fmt::join(ids.sizes(), "x"));
  const int64_t batch = ids.size(0);
  const int64_t length = ids.size(1);
  const at::Tensor attention_mask = inputs.get("attention_mask");
  at::Tensor mask;
  at::Tensor positions = inputs.get("position_ids");
  if (attention_mask.defined()) {
    mask = causal_mask(attention_mask, batch, length);
    if (!positions.defined()) positions = positions_from(attention_mask, batch, length);
  } else if (!positions.defined()) {
    const int64_t first = layers_.empty() ? 0 : layers_.front()->cached();
    positions = at::arange(first, first + length, ids.options()).unsqueeze(0);
  }

  at::Tensor x = only(embedding_->call({}, {{"input_ids", ids}}));
  const NamedTensors tables =
      rotary_->call({}, {{"hidden_states", x}, {"position_ids", positions}});
  for (const auto& layer : layers_) {
    x = only(layer->call({}, {{"hidden_states", x},
                              {"cos", tables.at("cos")},
                              {"sin", tables.at("sin")},
                              {"mask", mask}}));
  }
  return {{"last_hidden_state", only(norm_->call({}, {{"hidden_states", x}}))}};
}

LlamaForCausalLM::LlamaForCausalLM(const LlamaConfig& config)
    : Module("LlamaForCausalLM", {.inputs = {{"input_ids"},
                                             {"position_ids", /*required=*/false},
                                             {"attention_mask", /*required=*/false}},
                                  .outputs = {{"logits"}}}) {
  model_ = add_child("model", std::make_shared<LlamaModel>(config));
  lm_head_ = add_child(
      "lm_head", std::make_shared<Linear>(LinearOptions{
                     .in = config.hidden_size,
                     .out = config.vocab_size,
                     .weight = config.tie_word_embeddings ? model_->embedding_weight() : nullptr}));
  finish();
}

NamedTensors LlamaForCausalLM::forward(const NamedTensors& inputs) {
  const at::Tensor hidden_states =
      only(model_->call({}, {{"input_ids", inputs.at("input_ids")},
                             {"position_ids", inputs.get("position_ids")},
                             {"attention_mask", inputs.get("attention_mask")}}));
  return {{"logits", only(lm_head_->call({}, {{"input", hidden_states}}))}};
}

}  // namespace shardproof
