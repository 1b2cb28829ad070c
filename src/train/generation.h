// Generation: prompts in, tokens out, the same on every rank of any layout.
#pragma once

#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "nn/module.h"
#include "train/sampling.h"

namespace shardproof {

struct GenerateOptions {
  int64_t max_new_tokens = 20;  // a sequence
  // A sequence ends with the first of these; none: at the maximum.
  std::vector<int64_t> eos_ids = {};
  int64_t pad_id = 0;     // any token of the vocabulary: padding is masked
  bool use_cache = true;  // false: every step computes all tokens again, to the same result
  SamplingOptions sampling = {};
  // Where the plan leaves the logits cut by vocabulary: makes those of the last tokens, [batch,
  // part of the vocabulary], whole on every rank (CausalLogits::whole). Empty: they are.
  std::function<at::Tensor(const at::Tensor& logits)> whole_logits = {};
  // Throws InputError.
  void validate() const;
};

struct Generated {
  std::vector<std::vector<int64_t>> tokens;  // new ones by sequence, the end of sequence included
  // For each of them the highest logit minus the second highest (see top2_margin).
  std::vector<std::vector<double>> margins;
  std::vector<bool> ended;  // by an end of sequence, not by the maximum
  int64_t steps = 0;        // forward passes
  int64_t cache_bytes = 0;  // of this rank
};

// Continues each prompt, without gradients. `model`: a causal language model whose inputs are
// "input_ids" and "attention_mask", with output "logits". Prompts of unequal
// length form one batch, padded in front; positions and masks are kept per sequence, so each gets
// what it would get alone. Draws are keyed by (seed, step, index of the prompt).
//
// Collective over `world`, all ranks that hold parts of the model, with the same prompts and
// options: data ranks do the same work. The tokens of each step are chosen on rank 0 and broadcast,
// so all ranks feed the same tokens and stop at the same step. With FSDP each unit is gathered and
// freed in every forward pass; the caches are sized by local heads and freed at the end.
//
// Throws InputError for no prompts, an empty prompt, a token outside the vocabulary and wrong
// options, and ContractError, on all ranks, where logits are not finite or, with a cache wanted, no
// module can hold one.
Generated generate(Module& model, const std::vector<std::vector<int64_t>>& prompts,
                   const GenerateOptions& options, Communicator& world);

}  // namespace shardproof
