#include "models/decoder/model.h"

#include <ATen/ATen.h>

#include "base/check.h"
#include "nn/padding.h"

namespace shardproof {
namespace {

std::string layer_name(size_t index) { return fmt::format("layers.{}", index); }

}  // namespace

DecoderModel::DecoderModel(const DecoderOptions& options)
    : Module("DecoderModel", {.inputs = {{"input_ids"},
                                         {"position_ids", /*required=*/false},
                                         {"attention_mask", /*required=*/false}},
                              .outputs = {{"last_hidden_state"}}}),
      layer_options_(options.layers) {
  embedding_ =
      add_child("embed_tokens",
                std::make_shared<Embedding>(EmbeddingOptions{.rows = options.vocab_size,
                                                             .width = options.hidden_size,
                                                             .padding_row = options.padding_row,
                                                             .scale = options.embedding_scale}));
  for (const RopeOptions& table : options.rotary) {
    const std::string name =
        options.rotary.size() == 1 ? "rotary_emb" : fmt::format("rotary_emb.{}", rotary_.size());
    rotary_.push_back(add_child(name, std::make_shared<RotaryEmbedding>(table)));
  }
  for (size_t i = 0; i < options.layers.size(); ++i) {
    SP_EXPECT(options.layers[i].rotary < rotary_.size(), "layer {} takes the rotary table {} of {}",
              i, options.layers[i].rotary, rotary_.size());
    layers_.push_back(
        add_child(layer_name(i), std::make_shared<DecoderLayer>(options, options.layers[i])));
  }
  RmsNormOptions norm = options.norm;
  norm.width = options.hidden_size;
  norm_ = add_child("norm", std::make_shared<RmsNorm>(norm));
}

std::vector<Link> DecoderModel::links() const {
  std::vector<Link> links = {{{"", "input_ids"}, {"embed_tokens", "input_ids"}}};
  LinkEnd last = {"embed_tokens", "output"};
  for (size_t i = 0; i < layers_.size(); ++i) {
    links.push_back({last, {layer_name(i), "hidden_states"}});
    last = {layer_name(i), "output"};
  }
  links.push_back({last, {"norm", "hidden_states"}});
  links.push_back({{"norm", "output"}, {"", "last_hidden_state"}});
  return links;
}

std::vector<at::Tensor> DecoderModel::masks(const at::Tensor& ids,
                                            const at::Tensor& attention_mask) const {
  const int64_t batch = ids.size(0);
  const int64_t length = ids.size(1);
  const int64_t total = attention_mask.defined() ? attention_mask.size(-1) : cached() + length;
  const auto make = [&](std::optional<int64_t> window) -> at::Tensor {
    if (attention_mask.defined()) return causal_mask(attention_mask, batch, length, window);
    return window ? window_mask(length, total, *window, ids.device()) : at::Tensor();
  };
  std::map<std::optional<int64_t>, at::Tensor> made;
  std::vector<at::Tensor> masks;
  for (const DecoderLayerOptions& layer : layer_options_) {
    std::optional<int64_t> window = layer.window;
    if (window && *window >= total) window.reset();  // it leaves nothing out
    if (!made.contains(window)) made[window] = make(window);
    masks.push_back(made[window]);
  }
  return masks;
}

NamedTensors DecoderModel::forward(const NamedTensors& inputs) {
  const at::Tensor& ids = inputs.at("input_ids");
  SP_EXPECT(ids.dim() == 2, "{}: input_ids must be [batch, length], not {}", label(),
            fmt::join(ids.sizes(), "x"));
  const at::Tensor attention_mask = inputs.get("attention_mask");
  const std::vector<at::Tensor> masks = this->masks(ids, attention_mask);
  at::Tensor positions = inputs.get("position_ids");
  if (!positions.defined()) {
    positions = attention_mask.defined()
                    ? positions_from(attention_mask, ids.size(0), ids.size(1))
                    : at::arange(cached(), cached() + ids.size(1), ids.options()).unsqueeze(0);
  }

  at::Tensor x = only(embedding_->call({}, {{"input_ids", ids}}));
  std::vector<NamedTensors> tables;
  for (const auto& rotary : rotary_)
    tables.push_back(rotary->call({}, {{"hidden_states", x}, {"position_ids", positions}}));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const NamedTensors& table = tables[layer_options_[i].rotary];
    x = only(layers_[i]->call({}, {{"hidden_states", x},
                                   {"cos", table.at("cos")},
                                   {"sin", table.at("sin")},
                                   {"mask", masks[i]}}));
  }
  return {{"last_hidden_state", only(norm_->call({}, {{"hidden_states", x}}))}};
}

DecoderForCausalLM::DecoderForCausalLM(const DecoderOptions& options)
    : Module("DecoderForCausalLM", {.inputs = {{"input_ids"},
                                               {"position_ids", /*required=*/false},
                                               {"attention_mask", /*required=*/false}},
                                    .outputs = {{"logits"}}}) {
  model_ = add_child("model", std::make_shared<DecoderModel>(options));
  lm_head_ =
      add_child("lm_head", std::make_shared<Linear>(LinearOptions{
                               .in = options.hidden_size,
                               .out = options.vocab_size,
                               .weight = options.tied ? model_->embedding_weight() : nullptr}));
  finish();
}

std::vector<Link> DecoderForCausalLM::links() const {
  return {{{"", "input_ids"}, {"model", "input_ids"}},
          {{"model", "last_hidden_state"}, {"lm_head", "input"}},
          {{"lm_head", "output"}, {"", "logits"}}};
}

NamedTensors DecoderForCausalLM::forward(const NamedTensors& inputs) {
  const at::Tensor hidden_states =
      only(model_->call({}, {{"input_ids", inputs.at("input_ids")},
                             {"position_ids", inputs.get("position_ids")},
                             {"attention_mask", inputs.get("attention_mask")}}));
  return {{"logits", only(lm_head_->call({}, {{"input", hidden_states}}))}};
}

}  // namespace shardproof
