// A toy language model without attention: each token sees itself and the mean of those before it.
#pragma once

#include "nn/embedding.h"
#include "nn/mlp.h"
#include "nn/rms_norm.h"

namespace recency {

struct Config {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  double initializer_range = 0.02;
};

// Input "hidden_states" [batch, length, hidden], output the same: x_t + scale * mean(x_0 .. x_t).
// It has a parameter of its own, "scale" [hidden], and so states what that starts with.
class TokenMix final : public shardproof::Module, public shardproof::StatesInitialValues {
 public:
  explicit TokenMix(int64_t hidden);
  shardproof::InitialValues initial_values(const std::string& parameter) const override;

 protected:
  shardproof::NamedTensors forward(const shardproof::NamedTensors& inputs) override;

 private:
  shardproof::ParamPtr scale_;
};

// x + mlp(norm(mix(x))). Children mix, norm, mlp.
class Block final : public shardproof::Module {
 public:
  explicit Block(const Config& config);
  // Which value goes where, so that a plan can be checked without running it.
  std::vector<shardproof::Link> links() const override;

 protected:
  shardproof::NamedTensors forward(const shardproof::NamedTensors& inputs) override;

 private:
  std::shared_ptr<TokenMix> mix_;
  std::shared_ptr<shardproof::RmsNorm> norm_;
  std::shared_ptr<shardproof::GatedMlp> mlp_;
};

// Input "input_ids" [batch, length], output "logits" [batch, length, vocab]. Children embed,
// blocks.N, norm, head. A root: finish() was called.
class Model final : public shardproof::Module {
 public:
  explicit Model(const Config& config);
  std::vector<shardproof::Link> links() const override;

 protected:
  shardproof::NamedTensors forward(const shardproof::NamedTensors& inputs) override;

 private:
  std::shared_ptr<shardproof::Embedding> embed_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<shardproof::RmsNorm> norm_;
  std::shared_ptr<shardproof::Linear> head_;
};

}  // namespace recency
