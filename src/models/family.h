// A model family: what the rest of the program needs to know of an architecture. One folder a
// family.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/weight_map.h"
#include "nn/module.h"
#include "parallel/plan.h"

namespace shardproof {

struct CausalLM {
  // Input "input_ids" [batch, length] int64, optional "position_ids" and, for generation,
  // "attention_mask" (see models/decoder/model.h); output "logits" [batch, length, vocab].
  // Parameters are declared, not placed.
  std::shared_ptr<Module> model;
  int64_t vocab_size = 0;
  int64_t layers = 0;
  bool tied = false;
  // Standard deviation of what parameters start with where there are no weights.
  double initializer_range = 0.02;
};

struct ModelFamily {
  std::string name;  // `model_type` of config.json
  // From the text of config.json (`origin` names it in errors). Throws InputError naming the key.
  std::function<CausalLM(const std::string& config_json, const std::string& origin)> build;
  ModelPlans plans;
  // Where checkpoints keep the parameters that they do not have under their own names.
  WeightMap weights = {};
};

// Families by name. An object, not a global: the program makes one, tests may make their own.
class FamilyRegistry {
 public:
  void add(ModelFamily family);
  // Throws InputError with the known names.
  const ModelFamily& find(const std::string& model_type) const;
  std::vector<std::string> names() const;

 private:
  std::vector<ModelFamily> families_;
};

// All families that this library ships.
FamilyRegistry shipped_families();

struct LoadedModel {
  CausalLM causal_lm;
  const ModelFamily* family = nullptr;
};
// Reads `directory`/config.json and builds the model. Throws InputError.
LoadedModel build_from_directory(const FamilyRegistry& families, const std::string& directory);

}  // namespace shardproof
