// Synthetic batches, keyed by sample: what a sample holds depends on (seed, step, sample id) alone,
// never on the rank that reads it or on the layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "nn/loss.h"

namespace shardproof {

struct Batch {
  at::Tensor input_ids;             // [rows, length] int64
  at::Tensor labels;                // [rows, length] int64, kIgnoredLabel = left out; not shifted
  std::vector<int64_t> sample_ids;  // one a row
};

struct DataSpec {
  int64_t samples = 0;  // rows of the global batch of one step
  int64_t length = 0;   // tokens a sample
  int64_t vocab = 0;    // token ids are drawn from [0, vocab)
  uint64_t seed = 0;
};

// Neighbouring rows of the global batch.
struct SampleRange {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const SampleRange&) const = default;
};

// The rows of one of `data_size` data ranks: contiguous, dealt evenly, the remainder to the low
// ranks.
SampleRange split_samples(int64_t samples, int64_t data_size, int64_t data_rank);

// These rows of the global batch of `step`. Each sample has its own number of valid labels, at its
// end: the last one of a step has a single one, the others between half and all of theirs. Throws
// ContractError for rows outside the batch.
Batch make_batch(const DataSpec& spec, int64_t step, SampleRange rows);

// How many labels the loss counts: position t predicts label t + 1, so the first column is not one.
int64_t count_valid(const Batch& batch);

}  // namespace shardproof
