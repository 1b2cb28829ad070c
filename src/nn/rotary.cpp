#include "nn/rotary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace shardproof {
namespace {

// Long wavelengths are stretched by `factor`, short ones kept, those between interpolated.
at::Tensor llama3_scaled(const at::Tensor& frequencies, const RopeOptions& options) {
  const double length = options.original_max_position_embeddings;
  const double low_wavelength = length / options.low_freq_factor;
  const double high_wavelength = length / options.high_freq_factor;
  const at::Tensor wavelengths = frequencies.reciprocal() * (2 * std::numbers::pi);
  const at::Tensor is_long = wavelengths.gt(low_wavelength);
  const at::Tensor is_short = wavelengths.lt(high_wavelength);
  const at::Tensor scaled = at::where(is_long, frequencies / options.factor, frequencies);
  const at::Tensor smooth = (wavelengths.reciprocal() * length - options.low_freq_factor) /
                            (options.high_freq_factor - options.low_freq_factor);
  const at::Tensor between = (1 - smooth) * scaled / options.factor + smooth * scaled;
  return at::where(is_long.logical_or(is_short).logical_not(), between, scaled);
}

// Where in the table the frequency lies that turns `times` over the original length.
double position_of_turns(double times, const RopeOptions& options) {
  const double length = options.original_max_position_embeddings;
  return static_cast<double>(options.dim) * std::log(length / (times * 2 * std::numbers::pi)) /
         (2 * std::log(options.theta));
}

// `powers`: the inverse of the plain frequencies.
at::Tensor yarn_scaled(const at::Tensor& powers, const RopeOptions& options) {
  double low = position_of_turns(options.beta_fast, options);
  double high = position_of_turns(options.beta_slow, options);
  if (options.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(options.dim - 1));
  if (low == high) high += 0.001;
  const at::Tensor ramp =
      ((at::arange(options.dim / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const at::Tensor kept = 1 - ramp;
  return (powers * options.factor).reciprocal() * (1 - kept) + powers.reciprocal() * kept;
}

}  // namespace

double yarn_magnitude(double factor, double m) {
  return factor <= 1.0 ? 1.0 : 0.1 * m * std::log(factor) + 1.0;
}

at::Tensor inverse_frequencies(const RopeOptions& options) {
  SP_EXPECT(options.dim > 0 && options.dim % 2 == 0,
            "rotary embedding pairs the halves of a head: its dim must be even, not {}",
            options.dim);
  const at::Tensor exponents =
      at::arange(0, options.dim, 2, at::kLong).to(at::kFloat) / static_cast<double>(options.dim);
  const at::Tensor powers = at::pow(at::Scalar(options.theta), exponents);
  const at::Tensor frequencies = powers.reciprocal();
  switch (options.type) {
    case RopeType::kDefault:
      return frequencies;
    case RopeType::kLinear:
      return frequencies / options.factor;
    case RopeType::kLlama3:
      return llama3_scaled(frequencies, options);
    case RopeType::kYarn:
      return yarn_scaled(powers, options);
  }
  SP_ASSERT(false, "unknown rope type {}", static_cast<int>(options.type));
}

RotaryEmbedding::RotaryEmbedding(RopeOptions options)
    : Module("RotaryEmbedding",
             {.inputs = {{"hidden_states"}, {"position_ids"}}, .outputs = {{"cos"}, {"sin"}}}),
      inverse_frequencies_(inverse_frequencies(options)),
      attention_factor_(options.attention_factor) {}

NamedTensors RotaryEmbedding::forward(const NamedTensors& inputs) {
  const at::Tensor& hidden_states = inputs.at("hidden_states");
  const at::Tensor& positions = inputs.at("position_ids");
  const auto wide = hidden_states.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = hidden_states.options().dtype(wide);
  const at::Tensor angles = positions.to(options).unsqueeze(-1) * inverse_frequencies_.to(options);
  const at::Tensor both = at::cat({angles, angles}, -1);
  const auto type = hidden_states.scalar_type();
  const auto table = [&](const at::Tensor& turned) {
    return (attention_factor_ == 1.0 ? turned : turned * attention_factor_).to(type);
  };
  return {{"cos", table(both.cos())}, {"sin", table(both.sin())}};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t dim = cos.size(-1);
  if (dim < x.size(-1)) {
    const at::Tensor kept = x.narrow(-1, dim, x.size(-1) - dim);
    return at::cat({rotate(x.narrow(-1, 0, dim), cos, sin), kept}, -1);
  }
  const auto halves = x.chunk(2, -1);
  const at::Tensor turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.unsqueeze(1) + turned * sin.unsqueeze(1);
}

at::Tensor halves_from_neighbours(const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() /= 2;
  shape.push_back(2);
  return x.reshape(shape).transpose(-1, -2).reshape(x.sizes());
}

}  // namespace shardproof
