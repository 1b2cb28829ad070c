// Generation on one layout of one model, against what stock transformers generated.
#pragma once

#include "harness/generation_rule.h"
#include "harness/layout_check.h"

namespace shardproof {

// What the unsharded bfloat16 runs generated: made once, for all layouts of a model.
class GenerationOracles {
 public:
  // Of `source`, from the prompts of `reference`. Made on the first call for this directory and
  // number of new tokens, by `launcher`, all of whose ranks must call. On the first rank; empty
  // elsewhere.
  const std::vector<Continuation>& get(Launcher& launcher, const ModelSource& source,
                                       const GenerationReference& reference);

 private:
  std::map<std::string, std::vector<Continuation>> made_;
};

// All prompts of `model`/generation.json are continued greedily, as one batch padded in front.
// float32: compared with transformers, to the token. bfloat16: with transformers in float32 and
// with the unsharded bfloat16 run, by the rule of generation_rule.h. Every rank of `launcher` must
// call.
std::vector<LayoutOutcome> check_generation(Launcher& launcher, GenerationOracles& oracles,
                                            const Scenario& scenario,
                                            const std::filesystem::path& model,
                                            const LayoutRun& run, at::ScalarType dtype,
                                            const RunSeams& seams = {});

}  // namespace shardproof
