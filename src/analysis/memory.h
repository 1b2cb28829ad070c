// How much memory a rank needs at most to load a model, to generate with it and to train it, under
// a plan, without doing it. Pure: the model is declared only, the mesh may have any size.
//
// Exact: parameters, gradients, moments, cache. Estimates: activations (analysis/activations.h),
// and from the sizes of FSDP units what they need while they are gathered and reduced. Not counted:
// the program, libraries, what the allocator keeps for itself.
#pragma once

#include "analysis/activations.h"

namespace shardproof {

enum class Phase { kLoad, kGenerate, kTrain };
const char* to_string(Phase phase);  // "load", "generate", "train"

struct MemoryOptions {
  ItemSizes sizes = {};
  BatchShape train = {};     // rows and tokens of one data rank in a step
  BatchShape generate = {};  // prompts, and the tokens that are cached of each, the new ones too
};

// Bytes of one rank in a phase. What does not belong to the phase is 0.
struct MemoryUse {
  Phase phase = Phase::kLoad;
  int64_t rank = 0;
  int64_t parameters = 0;  // its shards
  int64_t gradients = 0;   // all of them, laid out as the shards
  int64_t moments = 0;     // two of each
  // With fsdp: the units that stay gathered, and the largest of the others. Without: views that are
  // zeros where their shard is not (biases that are added on one rank only).
  int64_t gathered = 0;
  // A second unit: its message while it is gathered, its full gradients while they are reduced. At
  // load: the largest box that is read at a time. Else what an optimizer step or a reduction needs.
  int64_t buffers = 0;
  // Training: what forward saves for backward, and the logits. Generation: of one layer, and the
  // logits.
  int64_t activations = 0;
  int64_t cache = 0;  // keys and values of all tokens
  // What of these is never there at the same time: gradients come while activations go.
  int64_t overlap = 0;
  int64_t total() const {
    return parameters + gradients + moments + gathered + buffers + activations + cache - overlap;
  }
};

MemoryUse memory_of(Module& model, const ResolvedPlan& plan, Phase phase, int64_t rank,
                    const MemoryOptions& options = {});

// The largest over all ranks of plan.mesh. Every remainder goes to low coordinates, so that this is
// rank 0, but for what only others hold: views of zeros (biases that rank 0 adds). The first of
// those is looked at too.
MemoryUse memory_of_fullest(Module& model, const ResolvedPlan& plan, Phase phase,
                            const MemoryOptions& options = {});

}  // namespace shardproof
