#include "train/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace shardproof {

SampleRange split_samples(int64_t samples, int64_t data_size, int64_t data_rank) {
  SP_EXPECT(samples >= 0 && data_size > 0 && 0 <= data_rank && data_rank < data_size,
            "{} samples, data rank {} of {}", samples, data_rank, data_size);
  const int64_t each = samples / data_size;
  const int64_t remainder = samples % data_size;
  return {data_rank * each + std::min(data_rank, remainder), each + (data_rank < remainder)};
}

namespace {

// The number of labels at the end of a sample that count.
int64_t valid_labels(const DataSpec& spec, int64_t row, const CounterRng& draw) {
  const int64_t most = spec.length - 1;
  if (row == spec.samples - 1) return std::min<int64_t>(1, most);
  return most -
         static_cast<int64_t>(draw.integer(spec.length, static_cast<uint64_t>(most / 2 + 1)));
}

}  // namespace

Batch make_batch(const DataSpec& spec, int64_t step, SampleRange rows) {
  SP_EXPECT(spec.length > 0 && spec.vocab > 0, "samples of {} tokens out of {}", spec.length,
            spec.vocab);
  SP_EXPECT(rows.first >= 0 && rows.count >= 0 && rows.first + rows.count <= spec.samples,
            "rows {} to {} of a batch of {}", rows.first, rows.first + rows.count, spec.samples);
  Batch batch{at::empty({rows.count, spec.length}, at::kLong),
              at::full({rows.count, spec.length}, kIgnoredLabel, at::kLong),
              {}};
  auto* ids = batch.input_ids.mutable_data_ptr<int64_t>();
  auto* labels = batch.labels.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = rows.first + i;
    batch.sample_ids.push_back(step * spec.samples + row);
    const CounterRng draw(spec.seed, fmt::format("sample/{}/{}", step, batch.sample_ids.back()));
    for (int64_t t = 0; t < spec.length; ++t)
      ids[i * spec.length + t] =
          static_cast<int64_t>(draw.integer(t, static_cast<uint64_t>(spec.vocab)));
    const int64_t valid = valid_labels(spec, row, draw);
    for (int64_t t = spec.length - valid; t < spec.length; ++t)
      labels[i * spec.length + t] = ids[i * spec.length + t];
  }
  return batch;
}

int64_t count_valid(const Batch& batch) { return count_valid(shift_labels(batch.labels)); }

}  // namespace shardproof
