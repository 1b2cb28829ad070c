// How the next token is chosen from a row of logits. Pure functions: the same row, seed, step and
// sequence give the same token on any rank and layout.
//
// Meaning and order as in transformers 5.24 (generation/logits_process.py): temperature, then
// top-k, then top-p; what is excluded becomes minus infinity. Computed in float64.
#pragma once

#include <cstdint>
#include <span>

namespace shardproof {

struct SamplingOptions {
  double temperature = 0;  // logits are divided by it; 0 = greedy, no draw
  int64_t top_k = 0;       // keep the k highest, and whatever equals the last of them; 0 = all
  // Keep the most probable tokens that together reach this probability, at least one; 1 = all.
  double top_p = 1;
  uint64_t seed = 0;

  // Throws InputError, by name and value.
  void validate() const;
};

// The index of the highest, the lowest such index where several are equal. Throws ContractError for
// an empty row.
int64_t greedy(std::span<const double> logits);
// The highest minus the second highest: how far a difference in the logits may go before greedy()
// changes its mind. Infinity for a row of one.
double top2_margin(std::span<const double> logits);

void divide_by_temperature(std::span<double> logits, double temperature);
void keep_top_k(std::span<double> logits, int64_t k);
// Of equal logits at the border the higher indices stay.
void keep_top_p(std::span<double> logits, double p);

// The inverse of the distribution function of softmax(logits) at `uniform` in [0, 1): the first
// index up to which the probabilities sum to more. Never one that is excluded. Throws ContractError
// where all are.
int64_t draw(std::span<const double> logits, double uniform);

// All of it, for one sequence of a batch at one step.
int64_t choose_token(std::span<const double> logits, const SamplingOptions& options, int64_t step,
                     int64_t sequence);

}  // namespace shardproof
