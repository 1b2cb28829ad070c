// The rule that says which tokens may differ from those they are compared with.
//
// In float32 none: the tokens are those of stock transformers in float32, every one.
//
// In bfloat16 the two best logits of a step may lie closer than rounding takes them, and the other
// one may win. How far rounding takes a margin (the best logit minus the second) is measured:
//
//   noise = kappa * RMS(margin of the unsharded bfloat16 run - margin of float32 transformers)
//
// over the steps of all prompts before the first difference of their tokens: up to there both have
// read the same. A sharded run is compared with float32 transformers and with the unsharded
// bfloat16 run. The first token of a sequence that differs passes only where the margin there is
// below the noise: transformers' float32 margin or, where the unsharded bfloat16 run had left
// transformers' tokens before that step, its own. What follows a difference answers another text,
// so nothing is asked of it. And the margins themselves are held to the noise, for a run could be
// wrong and still choose the right tokens: their RMS difference over the steps before any
// difference of tokens must not exceed it.
#pragma once

#include "harness/comparison.h"
#include "harness/generation_reference.h"

namespace shardproof {

// The step, from 0, of the first token that is not the same; one that is missing is not. Empty
// where there is none.
std::optional<int64_t> first_difference(const std::vector<int64_t>& ids,
                                        const std::vector<int64_t>& others);

// RMS difference of margins over the steps of all sequences before the first difference of their
// tokens; NaN where there is no such step.
double margin_difference(const std::vector<Continuation>& run,
                         const std::vector<Continuation>& other);

// kappa * margin_difference.
double margin_noise(const std::vector<Continuation>& unsharded,
                    const std::vector<Continuation>& reference);

// For each sequence and step of `truth`, the margin that a difference there is held to: that of
// `reference` while the tokens before the step are its own, afterwards that of `truth`.
std::vector<std::vector<double>> deciding_margins(const std::vector<Continuation>& truth,
                                                  const std::vector<Continuation>& reference);

// A row of kind "tokens" for each sequence: error = how many tokens differ, of which `allowed` may;
// `step` is that of the first of them, which the note names, passed or not, with its margin. Then,
// where there is a noise, one of kind "margins". `noise` 0: every token must be the same.
std::vector<Row> judge_continuations(const std::vector<Continuation>& run,
                                     const std::vector<Continuation>& truth,
                                     const std::vector<std::vector<double>>& deciding, double noise,
                                     const std::string& dtype);

}  // namespace shardproof
