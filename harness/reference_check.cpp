#include "harness/reference_check.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/check.h"
#include "harness/unsharded_step.h"
#include "harness/working_type.h"

namespace shardproof {
namespace {

constexpr int64_t kSmall = 64;          // tensors below are compared by their norm
constexpr const char* kStock = "f32.";  // prefix of stock transformers' values

struct Named {
  Kind kind;
  std::string name;       // for people
  std::string reference;  // in the file
  at::Tensor value;
  at::ScalarType dtype = at::kDouble;  // of the run
};

// Rows 0..3 and the last 4, columns 0..31 and the last 32 of a matrix; the whole of a vector.
at::Tensor gradient_slice(const at::Tensor& gradient) {
  if (gradient.dim() != 2) return gradient;
  const at::Tensor rows = at::cat({gradient.slice(0, 0, 4), gradient.slice(0, -4)});
  return at::cat({rows.slice(1, 0, 32), rows.slice(1, -32)}, 1);
}

at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kDouble); }

// The values of the step, in execution order, that the file has or must have.
std::vector<Named> values_of(const UnshardedStep& step, const SafetensorsFile& file) {
  std::vector<Named> values = {{Kind::kOutput, "logits", "logits", step.logits},
                               {Kind::kLoss, "loss", "loss", scalar(step.loss)}};
  for (const auto& [name, gradient] : step.gradients) {
    SP_EXPECT(gradient.defined(), "{} got no gradient in the unsharded run", name);
    if (file.contains("gradnorm." + name)) {
      values.push_back({Kind::kGradient, name + " (norm)", "gradnorm." + name,
                        scalar(gradient.to(at::kDouble).norm().item<double>())});
      values.push_back(
          {Kind::kGradient, name + " (slice)", "gradslice." + name, gradient_slice(gradient)});
    } else {
      values.push_back({Kind::kGradient, name, "grad." + name, gradient});
    }
  }
  values.push_back({Kind::kNorm, "grad_norm", "grad_norm", scalar(step.grad_norm)});
  for (Named& value : values) value.dtype = step.logits.scalar_type();
  return values;
}

SafetensorsFile open_reference(const std::filesystem::path& model) {
  return SafetensorsFile(model / "reference.safetensors");
}

UnshardedStep step_on_reference(const CommPtr& self, const ModelSource& model,
                                const SafetensorsFile& file, at::ScalarType dtype) {
  const Batch batch{file.read("input_ids"), file.read("labels"), {}};
  return run_unsharded_step(self, model, dtype, batch);
}

// A reference that no value of the run answers to would be passed over in silence.
void expect_all_used(const SafetensorsFile& file, const std::vector<Named>& values) {
  std::set<std::string> used = {"input_ids", "labels"};
  for (const Named& value : values) used.insert(value.reference);
  for (const TensorEntry& entry : file.entries())
    SP_VALIDATE(entry.name.starts_with(kStock) || used.contains(entry.name),
                "{}: '{}' is a reference for nothing that the model has", file.path().string(),
                entry.name);
}

Row row_of(const Named& value, size_t order, double truth_norm, double error, double allowed) {
  Row row{.key = {value.kind, value.name, 0}, .order = static_cast<int64_t>(order), .level = 3};
  row.dtype = working_type_name(value.dtype);
  row.elements = value.value.numel();
  row.truth_norm = truth_norm;
  row.error = error / truth_norm;
  row.allowed = allowed / truth_norm;
  row.passed = row.error <= row.allowed;  // false for NaN, and for a truth of zero
  row.note = std::isfinite(row.error) ? "" : "not finite";
  return row;
}

double frobenius(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

at::Tensor read_like(const SafetensorsFile& file, const std::string& name,
                     const at::Tensor& value) {
  const at::Tensor read = file.read(name).to(at::kDouble);
  SP_VALIDATE(read.sizes() == value.sizes(), "{}: '{}' is {}, the model's is {}",
              file.path().string(), name, fmt::join(read.sizes(), "x"),
              fmt::join(value.sizes(), "x"));
  return read;
}

}  // namespace

std::vector<Row> check_reference_float64(const CommPtr& self, const ModelSource& model) {
  const SafetensorsFile file = open_reference(model.directory);
  const std::vector<Named> values =
      values_of(step_on_reference(self, model, file, at::kDouble), file);
  expect_all_used(file, values);
  std::vector<Row> rows;
  for (const Named& value : values) {
    const at::Tensor truth = read_like(file, value.reference, value.value);
    const double size = frobenius(truth);
    rows.push_back(
        row_of(value, rows.size(), size, frobenius(value.value - truth), kAllowedError * size));
  }
  return rows;
}

std::vector<Row> check_reference_float32(const CommPtr& self, const ModelSource& model) {
  const SafetensorsFile file = open_reference(model.directory);
  const std::vector<Named> values =
      values_of(step_on_reference(self, model, file, at::kFloat), file);
  const double eps = epsilon_of(at::kFloat);

  struct Measured {
    double size, own, stock;
    bool small;
  };
  std::vector<Measured> measured;
  double squares = 0;
  for (const Named& value : values) {
    const at::Tensor truth = read_like(file, value.reference, value.value);
    const at::Tensor stock = read_like(file, kStock + value.reference, value.value);
    const bool small = truth.numel() < kSmall;
    measured.push_back({frobenius(truth), frobenius(value.value.to(at::kDouble) - truth),
                        frobenius(stock - truth), small});
    squares += std::pow(measured.back().stock / measured.back().size, 2);
  }
  const double typical = std::sqrt(squares / static_cast<double>(measured.size()));

  std::vector<Row> rows;
  for (size_t i = 0; i < values.size(); ++i) {
    const Measured& m = measured[i];
    const double floor = (m.small ? std::max(eps, typical) : eps) * m.size;
    rows.push_back(row_of(values[i], i, m.size, m.own, kKappa * std::max(m.stock, floor)));
  }
  return rows;
}

}  // namespace shardproof
