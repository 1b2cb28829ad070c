// One layer of a decoder: attention and MLP, each on a norm of the residual stream and added to it.
#pragma once

#include <functional>

#include "models/decoder/options.h"
#include "nn/module.h"

namespace shardproof {

// Inputs "hidden_states", "cos", "sin" and, optional, "mask" as of Attention; output "output" like
// hidden_states. Children self_attn, mlp and the norms that DecoderOptions::BlockNorms names.
class DecoderLayer final : public Module {
 public:
  // `layer`: what is this layer's own of options.layers.
  DecoderLayer(const DecoderOptions& options, const DecoderLayerOptions& layer);

  std::vector<Link> links() const override;
  int64_t cached() const { return cached_tokens_(); }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  void add_attention(const DecoderOptions& options);

  std::shared_ptr<RmsNorm> before_attention_, after_attention_, before_mlp_, after_mlp_;
  std::shared_ptr<Module> attention_, mlp_;
  std::function<int64_t()> cached_tokens_;
};

}  // namespace shardproof
