#include "harness/generation_check.h"

#include "harness/working_type.h"
#include "models/end_tokens.h"
#include "train/generation.h"

namespace shardproof {
namespace {

// Collective over `world`, a rank of which holds each part of the model.
std::vector<Continuation> generate_on(const CommPtr& world, const ModelSource& source,
                                      at::ScalarType dtype, const DistributedConfig& config,
                                      const GenerationReference& reference,
                                      const RunSeams& seams = {}) {
  const PlacedModel placed = place_model(world, source, dtype, config, seams);
  GenerateOptions options;
  options.max_new_tokens = reference.new_tokens;
  options.eos_ids = read_end_tokens(source.directory);
  options.whole_logits = placed.logits->gatherer();
  Generated generated = generate(*placed.causal_lm.model, reference.prompt_ids, options, *world);
  std::vector<Continuation> continuations;
  for (size_t i = 0; i < generated.tokens.size(); ++i)
    continuations.push_back({std::move(generated.tokens[i]), std::move(generated.margins[i])});
  return continuations;
}

}  // namespace

const std::vector<Continuation>& GenerationOracles::get(Launcher& launcher,
                                                        const ModelSource& source,
                                                        const GenerationReference& reference) {
  const std::string key = fmt::format("{} {}", source.directory.string(), reference.new_tokens);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  std::vector<Continuation> made;
  launcher.run(
      1, "unsharded generation of " + model_name(source.directory),
      [&](const CommPtr& self) { made = generate_on(self, source, at::kBFloat16, {}, reference); });
  return made_[key] = std::move(made);
}

std::vector<LayoutOutcome> check_generation(Launcher& launcher, GenerationOracles& oracles,
                                            const Scenario& scenario,
                                            const std::filesystem::path& model,
                                            const LayoutRun& run, at::ScalarType dtype,
                                            const RunSeams& seams) {
  ModelSource source = scenario.training.model;
  source.directory = model;
  const GenerationReference reference =
      read_generation_reference(model, scenario.generation->tokens);
  const std::vector<Continuation>* unsharded =
      dtype == at::kBFloat16 ? &oracles.get(launcher, source, reference) : nullptr;

  const std::string name = working_type_name(dtype);
  std::vector<Continuation> own;
  launcher.run(run.ranks(), fmt::format("{} on {} in {}", model_name(model), run.name(), name),
               [&](const CommPtr& comm) {
                 auto made = generate_on(comm, source, dtype, run.config, reference, seams);
                 if (comm->rank() == 0) own = std::move(made);
               });
  std::vector<LayoutOutcome> outcomes = {{"transformers float32", {}}};
  if (unsharded != nullptr) outcomes.push_back({"single " + name, {}});
  if (own.empty()) return outcomes;  // not the first rank

  const std::vector<Continuation>& truth = reference.continuations;
  const double noise = unsharded != nullptr ? margin_noise(*unsharded, truth) : 0;
  outcomes[0].rows = judge_continuations(own, truth, deciding_margins(truth, truth), noise, name);
  if (unsharded != nullptr)
    outcomes[1].rows =
        judge_continuations(own, *unsharded, deciding_margins(*unsharded, truth), noise, name);
  return outcomes;
}

}  // namespace shardproof
