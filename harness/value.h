// What a training run shows of itself: its values, one by one, under names that no layout changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>

#include "tensor/interval.h"

namespace shardproof {

// In the order in which a step makes them; then those of generation.
enum class Kind { kOutput, kLoss, kGradient, kNorm, kParameter, kMoment, kTokens, kMargins };

const char* kind_name(Kind kind);
// Throws InputError for a name that is none.
Kind kind_from_name(const std::string& name);

struct ValueKey {
  Kind kind = Kind::kOutput;
  std::string
      name;  // of the parameter, "loss", "norm", or module path ("logits" for the model's own)
  int64_t step = 0;
  auto operator<=>(const ValueKey&) const = default;
  std::string to_string() const;
};

// The part of a value that this rank holds.
struct Part {
  Region region;  // global positions of the local elements
  // Those that this rank counts, others holding copies; nothing: it counts none.
  std::optional<Region> owned;
  // A part that nobody else holds.
  static Part own(Region region) { return {region, region}; }
};

struct Value {
  ValueKey key;
  at::Tensor local;  // undefined: there is none, as for a gradient that never came
  // Which part `local` is of a whole of this shape.
  std::function<Part(const std::vector<int64_t>& shape)> part;
};

using ValueSink = std::function<void(const Value&)>;

// Who watches a run.
struct RunObserver {
  ValueSink show;
  // Called where the tensors shown so far are about to change: what is to be kept of them must be
  // copied, written or compared by now. May be empty.
  std::function<void()> settle = {};
};

}  // namespace shardproof
