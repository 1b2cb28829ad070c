#include "harness/comparison.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/names.h"
#include "harness/working_type.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

// What is summed over ranks, for each entry of the record.
enum Field { kSquaredError, kSquaredOwn, kElements, kNotFinite, kMissing, kFields };
// What of copies: the largest over ranks.
enum CopyField { kCopyError, kCopyNorm, kCopyFields };

// For finding the worst; a share that is no number (of nothing) counts as none.
double rank_of(const Row& row) {
  if (!row.passed) return INFINITY;
  if (row.key.kind == Kind::kTokens) return 0;  // a count: all that may differ often do
  return row.share() > 0 ? row.share() : 0;
}

void raise(double& largest, double value) { largest = std::max(largest, value); }

double squared(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.view({-1});
  return flat.dot(flat).item<double>();
}

}  // namespace

RunComparison::RunComparison(const RunRecord& record, ComparisonOptions options)
    : record_(record),
      options_(std::move(options)),
      sums_(record.entries().size() * kFields),
      copies_(record.entries().size() * kCopyFields) {
  SP_EXPECT(
      options_.rounding == nullptr || options_.rounding->by_entry.size() == record.entries().size(),
      "{} rounding errors for {} values", options_.rounding->by_entry.size(),
      record.entries().size());
}

bool RunComparison::expected(const RecordEntry& entry) const {
  if (!options_.kinds.empty() && !options_.kinds.contains(entry.key.kind)) return false;
  if (entry.key.kind == Kind::kParameter || entry.key.kind == Kind::kMoment)
    return entry.key.step == options_.steps;
  return entry.key.step < options_.steps;
}

void RunComparison::take(const Value& value) {
  const RecordEntry* entry = record_.find(value.key);
  if (entry == nullptr && (value.key.kind == Kind::kParameter || value.key.kind == Kind::kMoment))
    return;  // the record has made more steps
  SP_EXPECT(entry != nullptr, "the run shows {}, which the record does not have",
            value.key.to_string());
  double* sums = &sums_[static_cast<size_t>(entry->order) * kFields];
  if (!value.local.defined()) {
    const std::vector<int64_t>& shape = entry->shape;
    // An empty shard has no gradient to give.
    if (!entry->present || numel(value.part(shape).region) > 0) sums[kMissing] += 1;
    return;
  }
  if (!entry->present) {
    sums[kElements] += static_cast<double>(value.local.numel());
    return;
  }
  const Part part = value.part(entry->shape);
  SP_EXPECT(value.local.sizes().vec() == local_shape(part.region),
            "{}: this rank's part is {}, its region {} of the whole {}", value.key.to_string(),
            fmt::join(value.local.sizes(), "x"), fmt::join(local_shape(part.region), "x"),
            fmt::join(entry->shape, "x"));
  // In place, and without temporaries: these are the largest tensors of a run.
  const at::Tensor truth = record_.read(*entry, part.region).to(at::kDouble);
  const at::Tensor difference = truth.sub_(value.local);
  if (!std::isfinite(squared(difference))) sums[kNotFinite] += 1;
  const auto count = [&](const at::Tensor& error, const at::Tensor& own) {
    sums[kSquaredError] += squared(error);
    sums[kSquaredOwn] += std::pow(own.norm().item<double>(), 2);
    sums[kElements] += static_cast<double>(own.numel());
  };
  if (part.owned == part.region) {
    count(difference, value.local);
    return;
  }
  double* copies = &copies_[static_cast<size_t>(entry->order) * kCopyFields];
  raise(copies[kCopyError], std::sqrt(squared(difference)));
  raise(copies[kCopyNorm], value.local.norm().item<double>());
  if (part.owned && numel(*part.owned) > 0) {
    count(shardproof::take(difference, part.region, *part.owned),
          shardproof::take(value.local, part.region, *part.owned));
  }
}

std::vector<Measurement> RunComparison::measure(Communicator& comm) const {
  const at::Tensor sums = at::tensor(sums_, at::kDouble);
  const at::Tensor copies = at::tensor(copies_, at::kDouble);
  comm.all_reduce(sums, sums, ReduceOp::kSum, {"", "comparison", "compare"}).wait();
  comm.all_reduce(copies, copies, ReduceOp::kMax, {"", "comparison", "compare"}).wait();
  std::vector<Measurement> measured;
  for (const RecordEntry& entry : record_.entries()) {
    const double* sum = sums.const_data_ptr<double>() + entry.order * kFields;
    const double* copy = copies.const_data_ptr<double>() + entry.order * kCopyFields;
    measured.push_back({.elements = sum[kElements],
                        .missing = sum[kMissing],
                        .finite = sum[kNotFinite] == 0,
                        .norm = std::max(std::sqrt(sum[kSquaredOwn]), copy[kCopyNorm]),
                        .error = std::max(std::sqrt(sum[kSquaredError]), copy[kCopyError])});
  }
  return measured;
}

std::vector<Row> RunComparison::finish(Communicator& comm) const {
  const std::vector<Measurement> measured = measure(comm);
  std::vector<Row> rows;
  for (const RecordEntry& entry : record_.entries())
    if (expected(entry))
      rows.push_back(judge(entry, measured.at(static_cast<size_t>(entry.order))));
  return rows;
}

void RunComparison::judge_gradient_presence(const RecordEntry& entry, double missing,
                                            Row& row) const {
  if (entry.present) {
    row.note = fmt::format("missing on {} ranks where the record has it", missing);
  } else if (row.elements > 0 || missing == 0) {
    row.note = "there is one where the record has none";
  } else {
    row.zero = row.passed = may_be_zero(entry.key.name);
    row.note = row.zero ? "missing on both sides, as allowed"
                        : "missing on both sides: name it in allow_zero if that is right";
  }
}

Row RunComparison::judge(const RecordEntry& entry, const Measurement& measured) const {
  Row row{.key = entry.key, .order = entry.order, .truth_norm = entry.norm};
  const RoundingErrors* rounding = options_.rounding;
  const Bound bound =
      rounding != nullptr ? level2_bound(record_, entry, *rounding) : level1_bound(record_, entry);
  row.level = rounding != nullptr ? 2 : 1;
  if (rounding != nullptr) row.dtype = working_type_name(rounding->dtype);
  row.allowed = bound.allowed;
  row.elements = static_cast<int64_t>(measured.elements);
  row.error = measured.error / entry.norm;
  if (!entry.present || measured.missing > 0) {
    row.error = 0;
    judge_gradient_presence(entry, measured.missing, row);
    return row;
  }
  if (row.elements == 0 && entry.elements() > 0) return row;  // still "not compared"
  if (row.elements != entry.elements()) {
    row.note =
        fmt::format("{} elements were compared, there are {}", row.elements, entry.elements());
    return row;
  }
  if (!measured.finite || !std::isfinite(entry.norm)) {
    row.note = "not finite";
    return row;
  }
  const bool scalar = entry.key.kind == Kind::kLoss || entry.key.kind == Kind::kNorm;
  if (!scalar && entry.norm <= zero_norm(record_, entry) && measured.norm <= bound.zero) {
    row.error = 0;
    row.zero = row.passed = may_be_zero(entry.key.name);
    row.note = row.zero ? "zero on both sides, as allowed"
                        : "zero on both sides: name it in allow_zero if that is right";
    return row;
  }
  if (entry.norm == 0) row.error = INFINITY;
  row.passed = row.error <= row.allowed;
  row.note = std::isnan(row.allowed) && entry.norm > 0
                 ? "the unsharded run is not finite in this type"
                 : "";
  return row;
}

bool RunComparison::may_be_zero(const std::string& name) const {
  return std::any_of(options_.allow_zero.begin(), options_.allow_zero.end(),
                     [&](const std::string& pattern) { return pattern_matches(pattern, name); });
}

const Row* first_wrong(const std::vector<Row>& rows) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.passed; });
  return found == rows.end() ? nullptr : &*found;
}

const Row* worst(const std::vector<Row>& rows) {
  const auto found = std::max_element(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return rank_of(a) < rank_of(b); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace shardproof
