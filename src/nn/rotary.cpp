#include "nn/rotary.h"

#include <ATen/ATen.h>

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

}  // namespace

at::Tensor inverse_frequencies(const RopeOptions& options) {
  SP_EXPECT(options.dim > 0 && options.dim % 2 == 0,
            "rotary embedding pairs the halves of a head: its dim must be even, not {}",
            options.dim);
  const at::Tensor exponents =
      at::arange(0, options.dim, 2, at::kLong).to(at::kFloat) / static_cast<double>(options.dim);
  const at::Tensor frequencies = at::pow(at::Scalar(options.theta), exponents).reciprocal();
  switch (options.type) {
    case RopeType::kDefault:
      return frequencies;
    case RopeType::kLinear:
      return frequencies / options.factor;
    case RopeType::kLlama3:
      return llama3_scaled(frequencies, options);
  }
  SP_ASSERT(false, "unknown rope type {}", static_cast<int>(options.type));
}

RotaryEmbedding::RotaryEmbedding(RopeOptions options)
    : Module("RotaryEmbedding",
             {.inputs = {{"hidden_states"}, {"position_ids"}}, .outputs = {{"cos"}, {"sin"}}}),
      inverse_frequencies_(inverse_frequencies(options)) {}

NamedTensors RotaryEmbedding::forward(const NamedTensors& inputs) {
  const at::Tensor& hidden_states = inputs.at("hidden_states");
  const at::Tensor& positions = inputs.at("position_ids");
  const auto wide = hidden_states.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = hidden_states.options().dtype(wide);
  const at::Tensor angles = positions.to(options).unsqueeze(-1) * inverse_frequencies_.to(options);
  const at::Tensor both = at::cat({angles, angles}, -1);
  const auto type = hidden_states.scalar_type();
  return {{"cos", both.cos().to(type)}, {"sin", both.sin().to(type)}};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto halves = x.chunk(2, -1);
  const at::Tensor turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.unsqueeze(1) + turned * sin.unsqueeze(1);
}

}  // namespace shardproof
