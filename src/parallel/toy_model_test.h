// A small model for the tests of this layer: embedding, two gated MLPs around residuals, a head
// (tied or not).
#pragma once

#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "parallel/plan.h"

namespace shardproof {

class ToyModel final : public Module {
 public:
  static constexpr int64_t kVocab = 10, kHidden = 6, kWidth = 5;

  explicit ToyModel(bool tied)
      : Module("Toy", {.inputs = {{"input_ids"}}, .outputs = {{"logits"}}}) {
    embed_ = add_child(
        "embed", std::make_shared<Embedding>(EmbeddingOptions{.rows = kVocab, .width = kHidden}));
    for (int i = 0; i < 2; ++i) {
      layers_.push_back(
          add_child(fmt::format("layer{}", i), std::make_shared<GatedMlp>(kHidden, kWidth, true)));
    }
    head_ = add_child(
        "head",
        std::make_shared<Linear>(LinearOptions{
            .in = kHidden, .out = kVocab, .weight = tied ? embed_->parameter("weight") : nullptr}));
    finish();
  }

  static ModelPlans plans() {
    return {.tp = {{"embed", "embedding_rowwise"},
                   {"layer0.gate_proj", "colwise"},
                   {"layer0.up_proj", "colwise"},
                   {"layer0.down_proj", "rowwise"},
                   {"layer1.gate_proj", "colwise"},
                   {"layer1.up_proj", "colwise"},
                   {"layer1.down_proj", "rowwise"},
                   {"head", "colwise_gather_output"}},
            .fsdp = {{"embed", "free_full_weight"},
                     {"layer0", "free_full_weight"},
                     {"layer1", "free_full_weight"},
                     {"head", "keep_full_weight"}}};
  }

 protected:
  NamedTensors forward(const NamedTensors& inputs) override {
    at::Tensor x = (*embed_)(inputs.at("input_ids"));
    for (const auto& layer : layers_) x = x + (*layer)(x);
    return {{"logits", (*head_)(x)}};
  }

 private:
  std::shared_ptr<Embedding> embed_;
  std::vector<std::shared_ptr<GatedMlp>> layers_;
  std::shared_ptr<Linear> head_;
};

}  // namespace shardproof
