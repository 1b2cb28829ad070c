// One run of the training loop on one layout, watched from outside.
#pragma once

#include <filesystem>
#include <optional>
#include <set>

#include "harness/value.h"
#include "models/family.h"
#include "parallel/loss.h"
#include "parallel/parallelize.h"
#include "train/batch.h"
#include "train/optimizer.h"

namespace shardproof {

// Which modules' outputs are shown.
enum class Watch {
  kModules,  // every module
  kLayers,   // the decoder layers whole, and what stands beside them: embedding, norm, head
};

// Where a model comes from.
struct ModelSource {
  std::filesystem::path directory;  // config.json and, without `init_seed`, safetensors
  FamilyRegistry families = shipped_families();
  // Given: no weights are read; parameters start with the values of this seed (train/initialize.h),
  // biases and norms too moved away from zeros and ones.
  std::optional<uint64_t> init_seed = {};
};

struct TrainingSpec {
  ModelSource model;
  at::ScalarType dtype = at::kDouble;
  // Loaded weights are rounded to this type before anything computes with them: what a run in that
  // type is to be compared with starts from the same values.
  std::optional<at::ScalarType> round_weights;
  DataSpec data;  // vocab 0: the model's
  int64_t steps = 3;
  // False: no optimizer, and so no moments in memory; for one step whose gradients are wanted.
  bool update = true;
  AdamWOptions adamw;
  double max_norm = 0;
  Watch watch = Watch::kModules;
  std::set<Kind> kinds;  // what is shown; empty: everything
};

struct PlacedModel;

// Where a run may be changed from outside, to plant faults, to reorder sums and to record. Each may
// be empty.
struct RunSeams {
  // The communicator that the mesh is made of.
  std::function<CommPtr(CommPtr world)> world;
  std::function<void(ResolvedPlan&)> plan;
  // The communicator over which valid tokens are counted and the loss is summed.
  std::function<CommPtr(CommPtr data, CommPtr world)> data;
  // The model, loaded and not yet watched.
  std::function<void(PlacedModel&)> model;
  // What this rank computes of the batch of a step.
  std::function<Batch(Batch)> batch;
};

struct RunInfo {
  std::string family;
  int64_t parameters = 0;  // tensors
  // Canonical names in the order in which this rank's backward of the first step reached them.
  std::vector<std::string> backward_order;
};

// Collective over `world`, whose size must be that of the layout. Shows, in this order: module
// outputs and gradients (before clipping) of the first step, loss and norm of every step,
// parameters and moments after the last. Each rank trains on its own rows of the global batch.
RunInfo run_training(const CommPtr& world, const TrainingSpec& spec,
                     const DistributedConfig& config, const RunObserver& observer,
                     const RunSeams& seams = {});

// Throws InputError for what would make place_model() throw one, without reading weights.
void check_model(const ModelSource& source);

// The same for the plans of a layout: what resolve() refuses, and what the author of a plan got
// wrong though it would run (analysis/check_plan.h).
void check_plans(const ModelSource& source, const DistributedConfig& config);

// A model on `world`, placed, and loaded or initialised. Collective.
struct PlacedModel {
  CausalLM causal_lm;
  std::string family;
  MeshPtr mesh;
  std::shared_ptr<const ResolvedPlan> plan;
  std::shared_ptr<const CausalLogits> logits;  // how they lie, and the loss on them
};
PlacedModel place_model(const CommPtr& world, const ModelSource& source, at::ScalarType dtype,
                        const DistributedConfig& config, const RunSeams& seams = {});

}  // namespace shardproof
