// Embedding: rows of a table by id, on whatever part of the table is held.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

struct EmbeddingOptions {
  int64_t rows = 0;
  int64_t width = 0;
  // The row that gets no gradient from here, as torch.nn.Embedding has it.
  std::optional<int64_t> padding_row = {};
  // What rows are multiplied by, as Gemma 3 has it: rounded to float32, then to the weight's type.
  std::optional<double> scale = {};
};

// Input "input_ids" int64 of any shape [...], output "output" [..., width held]; parameter "weight"
// [rows, width]. Ids whose rows are not held give zeros: the sum over ranks that hold all rows
// between them, once each, is the lookup in the whole table. The gradient is dense and its sums
// have a fixed order. Works with no rows held. Throws InputError for an id outside [0, rows).
class Embedding final : public Module, public StatesInitialValues {
 public:
  explicit Embedding(EmbeddingOptions options);

  const ParamPtr& weight() const { return weight_; }
  // Normal, the padding row zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::optional<int64_t> padding_row_;
  std::optional<double> scale_;
  ParamPtr weight_;
};

}  // namespace shardproof
