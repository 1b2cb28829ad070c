// Llama for causal language modelling: single-device code, with the module paths of transformers.
#pragma once

#include "models/llama/config.h"
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/mlp.h"
#include "nn/rms_norm.h"

namespace shardproof {

// Inputs "hidden_states", "cos", "sin" and, optional, "mask" as of Attention; output "output" like
// hidden_states. Children
// input_layernorm, self_attn, post_attention_layernorm, mlp.
class LlamaDecoderLayer final : public Module {
 public:
  explicit LlamaDecoderLayer(const LlamaConfig& config);

  int64_t cached() const { return attention_->cached(); }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::shared_ptr<RmsNorm> input_norm_, post_attention_norm_;
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<GatedMlp> mlp_;
};

// Inputs "input_ids" [batch, length] and, optional, "position_ids" [batch or 1, length] and
// "attention_mask" int64 [batch, total] (1 = token, 0 = padding), whose last `length` columns are
// those of input_ids and the ones before them those of the tokens in the caches. Positions are by
// default counted from the mask, a sequence each, or else from what the caches hold on. Output
// "last_hidden_state". Children embed_tokens, rotary_emb, layers.N, norm.
class LlamaModel final : public Module {
 public:
  explicit LlamaModel(const LlamaConfig& config);

  const ParamPtr& embedding_weight() const { return embedding_->weight(); }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::shared_ptr<Embedding> embedding_;
  std::shared_ptr<RotaryEmbedding> rotary_;
  std::vector<std::shared_ptr<LlamaDecoderLayer>> layers_;
  std::shared_ptr<RmsNorm> norm_;
};

// Inputs "input_ids" int64 [batch, length] and, optional, "position_ids" and "attention_mask" as of
// LlamaModel; output "logits" [batch, length, vocab]. Children model, lm_head, whose weight is the
// embedding's where they are tied. A root: finish() was called.
class LlamaForCausalLM final : public Module {
 public:
  explicit LlamaForCausalLM(const LlamaConfig& config);

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::shared_ptr<LlamaModel> model_;
  std::shared_ptr<Linear> lm_head_;
};

}  // namespace shardproof
