// A decoder-only transformer for causal language modelling: single-device code, with the module
// paths of transformers.
#pragma once

#include "models/decoder/layer.h"
#include "nn/embedding.h"

namespace shardproof {

// Inputs "input_ids" [batch, length] and, optional, "position_ids" [batch or 1, length] and
// "attention_mask" int64 [batch, total] (1 = token, 0 = padding), whose last `length` columns are
// those of input_ids and the ones before them those of the tokens in the caches. Positions are by
// default counted from the mask, a sequence each, or else from what the caches hold on; windows
// count columns, padding included. Output "last_hidden_state". Children embed_tokens, rotary_emb
// (rotary_emb.N where there are several tables), layers.N, norm.
class DecoderModel final : public Module {
 public:
  explicit DecoderModel(const DecoderOptions& options);

  std::vector<Link> links() const override;
  const ParamPtr& embedding_weight() const { return embedding_->weight(); }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  // Of each layer; undefined where causality alone decides. Layers of one window share a tensor.
  std::vector<at::Tensor> masks(const at::Tensor& ids, const at::Tensor& attention_mask) const;
  int64_t cached() const { return layers_.empty() ? 0 : layers_.front()->cached(); }

  std::vector<DecoderLayerOptions> layer_options_;
  std::shared_ptr<Embedding> embedding_;
  std::vector<std::shared_ptr<RotaryEmbedding>> rotary_;
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<RmsNorm> norm_;
};

// Inputs "input_ids" int64 [batch, length] and, optional, "position_ids" and "attention_mask" as of
// DecoderModel; output "logits" [batch, length, vocab]. Children model, lm_head, whose weight is
// the embedding's where they are tied. A root: finish() was called.
class DecoderForCausalLM final : public Module {
 public:
  explicit DecoderForCausalLM(const DecoderOptions& options);

  std::vector<Link> links() const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::shared_ptr<DecoderModel> model_;
  std::shared_ptr<Linear> lm_head_;
};

}  // namespace shardproof
