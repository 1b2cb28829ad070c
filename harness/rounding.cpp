#include "harness/rounding.h"

#include <ATen/ATen.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "comm/self.h"
#include "harness/comparison.h"
#include "harness/twin.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

// The error of each value of the record, in the unsharded run or in a twin.
std::vector<double> errors_of(const TrainingSpec& spec, const RunRecord& truth,
                              std::optional<int64_t> twin) {
  const CommPtr self = make_self_communicator();
  RunComparison comparison(truth, {.steps = 1});
  const ValueSink take = [&](const Value& value) {
    comparison.take(twin ? in_order(value, spec.data, *twin) : value);
  };
  run_training(self, spec, {}, {take}, twin ? twin_seams(spec.data.seed, *twin) : RunSeams{});
  std::vector<double> errors;
  for (const Measurement& one : comparison.measure(*self))
    errors.push_back(one.finite ? one.error : std::nan(""));
  return errors;
}

}  // namespace

const std::set<Kind>& level2_kinds() {
  static const std::set<Kind> kinds = {Kind::kOutput, Kind::kLoss, Kind::kGradient, Kind::kNorm};
  return kinds;
}

TrainingSpec level2_run(TrainingSpec spec, at::ScalarType type) {
  spec.dtype = type;
  spec.round_weights.reset();
  spec.steps = 1;
  spec.update = false;
  spec.max_norm = 0;
  spec.kinds = level2_kinds();
  return spec;
}

TrainingSpec level2_truth(TrainingSpec spec, at::ScalarType type) {
  spec = level2_run(std::move(spec), at::kDouble);
  spec.round_weights = type;
  return spec;
}

RoundingErrors measure_rounding(Communicator& comm, const TrainingSpec& spec,
                                const RunRecord& truth) {
  const size_t values = truth.entries().size();
  // Of the unsharded run, then the sums of squares over the twins.
  std::vector<double> found(2 * values, 0.0);
  if (comm.rank() == 0) {
    const std::vector<double> errors = errors_of(spec, truth, {});
    std::copy(errors.begin(), errors.end(), found.begin());
  }
  // Rank 0 has had one run already: the first twin is the last rank's.
  for (int64_t twin = comm.size() - 1 - comm.rank(); twin < kTwins; twin += comm.size()) {
    const std::vector<double> errors = errors_of(spec, truth, twin);
    for (size_t i = 0; i < values; ++i) found[values + i] += errors[i] * errors[i];
  }
  const at::Tensor sums = at::tensor(found, at::kDouble);
  comm.all_reduce(sums, sums, ReduceOp::kSum, {"", "rounding", "compare"}).wait();
  const double* sum = sums.const_data_ptr<double>();
  RoundingErrors rounding{.dtype = spec.dtype, .by_entry = {}};
  for (size_t i = 0; i < values; ++i)
    rounding.by_entry.push_back(
        {.unsharded = sum[i], .twins = std::sqrt(sum[values + i] / double{kTwins})});
  return rounding;
}

void write_rounding(const std::filesystem::path& file, const RoundingErrors& rounding) {
  nlohmann::json json = nlohmann::json::array();
  for (const RoundingError& error : rounding.by_entry)
    json.push_back({error.unsharded, error.twins});
  std::ofstream out(file);
  out << json;
  out.close();
  SP_VALIDATE(!out.fail(), "{}: could not be written", file.string());
}

RoundingErrors read_rounding(const std::filesystem::path& file, at::ScalarType dtype) {
  const auto number = [](const nlohmann::json& json) {
    return json.is_null() ? std::nan("") : json.get<double>();
  };
  RoundingErrors rounding{.dtype = dtype, .by_entry = {}};
  for (const auto& item : nlohmann::json::parse(read_text_file(file)))
    rounding.by_entry.push_back({number(item.at(0)), number(item.at(1))});
  return rounding;
}

}  // namespace shardproof
