// For tests: the shipped models that have fixtures, and a training step of one on thread ranks.
#pragma once

#include <filesystem>

#include "comm/recording.h"
#include "comm/threads/run_ranks.h"
#include "models/family.h"
#include "parallel/loss.h"
#include "parallel/parallelize.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace shardproof::testing {

// None where SHARDPROOF_SOURCE_DIR is not set: each test program has a test that fails then.
inline std::vector<std::string> fixture_directories() {
  std::vector<std::string> found;
  const char* root = std::getenv("SHARDPROOF_SOURCE_DIR");
  if (root == nullptr) return found;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(root) / "fixtures"))
    if (std::filesystem::exists(entry.path() / "config.json")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

inline void fill(Module& model) {
  for (const ParamPtr& p : model.all_parameters())
    p->kept().copy_(at::sin(at::arange(p->kept().numel(), at::kDouble)).view(p->kept().sizes()) *
                    0.1);
}

// A model on one rank of a mesh, with its optimizer.
struct Placed {
  LoadedModel loaded;
  MeshPtr mesh;
  std::shared_ptr<const ResolvedPlan> plan;
  std::unique_ptr<CausalLogits> logits;
  std::unique_ptr<AdamW> optimizer;
  CommPtr data;

  Placed(const CommPtr& world, const LoadedModel& model, const DistributedConfig& config,
         at::ScalarType dtype)
      : loaded(model), mesh(std::make_shared<DeviceMesh>(world, config.mesh())) {
    Module& module = *loaded.causal_lm.model;
    plan = parallelize(module, mesh, config, loaded.family->plans, {.dtype = dtype});
    logits = std::make_unique<CausalLogits>(*plan, mesh);
    data = mesh->group({"dp_replicate", "fsdp"});
    fill(module);
    optimizer = std::make_unique<AdamW>(module.all_parameters(), AdamWOptions{});
  }

  Batch batch(int64_t rows, int64_t length) const {
    return make_batch({.samples = rows, .length = length, .vocab = loaded.causal_lm.vocab_size}, 0,
                      {0, rows});
  }
  void step(const Batch& batch, const StepOptions& options = {}) {
    train_step(*loaded.causal_lm.model, *optimizer, batch, logits->loss(), *data, *mesh->world(),
               options);
  }
};

}  // namespace shardproof::testing
