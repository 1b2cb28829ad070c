// The unsharded float64 run of every committed fixture against what transformers computed in
// float64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/test_source.h"
#include "checkpoint/load.h"
#include "models/family.h"
#include "nn/loss.h"
#include "nn/testing.h"

namespace shardproof {
namespace {

constexpr double kAllowed = 1e-10;

std::vector<std::filesystem::path> fixtures() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "fixtures")) {
    if (std::filesystem::exists(entry.path() / "reference.safetensors"))
      found.push_back(entry.path());
  }
  return found;
}

double norm_of(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

TEST(Reference, UnshardedFloat64RunIsThatOfTransformers) {
  const FamilyRegistry families = shipped_families();
  int checked = 0;
  for (const auto& fixture : fixtures()) {
    SCOPED_TRACE(fixture.filename().string());
    const LoadedModel loaded = build_from_directory(families, fixture.string());
    Module& model = *loaded.causal_lm.model;
    const auto parameters = model.all_parameters();
    for (const ParamPtr& parameter : parameters) parameter->place_whole(at::kDouble);
    load_parameters(model, CheckpointFiles(fixture), loaded.family->weights);
    const CheckpointFiles reference(fixture / "reference.safetensors");

    const at::Tensor logits = model(reference.read("input_ids"));
    const at::Tensor labels = shift_labels(reference.read("labels"));
    const at::Tensor loss = cross_entropy_sum(logits, labels) / count_valid(labels);
    loss.backward();

    EXPECT_LT(testing::relative_error(logits.detach(), reference.read("logits")), kAllowed);
    EXPECT_LT(testing::relative_error(loss.detach(), reference.read("loss").reshape({})), kAllowed);
    double squares = 0;
    for (const ParamPtr& parameter : parameters) {
      if (parameter->requires_grad) squares += std::pow(norm_of(parameter->view().grad()), 2);
    }
    EXPECT_NEAR(std::sqrt(squares) / reference.read("grad_norm").item<double>(), 1, kAllowed);
    for (const ParamPtr& parameter : parameters) {
      if (!parameter->requires_grad) continue;
      const at::Tensor& grad = parameter->view().grad();
      const at::Tensor truth = reference.read("grad." + parameter->name());
      // Zero by mathematics on both sides (a bias of keys without positions) counts as equal.
      const double noise = 1e-13 * std::sqrt(squares);
      if (norm_of(grad) < noise && norm_of(truth) < noise) continue;
      EXPECT_LT(testing::relative_error(grad, truth), kAllowed) << parameter->name();
      ++checked;
    }
  }
  EXPECT_GT(checked, 0) << "no fixture was found: is SHARDPROOF_SOURCE_DIR set?";
}

}  // namespace
}  // namespace shardproof
