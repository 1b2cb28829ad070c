#include "harness/oracle_store.h"

#include <algorithm>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr int64_t kRoundingRanks = 4;  // that share the twins, at most

std::string key_of(const TrainingSpec& spec, const DistributedConfig& config) {
  const AdamWOptions& adamw = spec.adamw;
  std::vector<std::string> kinds;
  for (const Kind kind : spec.kinds) kinds.emplace_back(kind_name(kind));
  const std::string seed =
      spec.model.init_seed ? fmt::format("from seed {}", *spec.model.init_seed) : "";
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     spec.model.directory.string(), seed, toString(spec.dtype),
                     toString(spec.round_weights.value_or(spec.dtype)), spec.data.samples,
                     spec.data.length, spec.data.seed, spec.steps, spec.update, adamw.lr,
                     adamw.beta1, adamw.beta2, adamw.eps, adamw.weight_decay, spec.max_norm,
                     static_cast<int>(spec.watch), fmt::join(kinds, ","), config.layout());
}

}  // namespace

OracleStore::OracleStore(std::filesystem::path folder, bool owns)
    : folder_(std::move(folder)), owns_(owns) {
  if (owns_) std::filesystem::remove_all(folder_);
}

OracleStore::~OracleStore() {
  records_.clear();
  std::error_code ignored;  // a file left behind is no reason to fail
  if (owns_) std::filesystem::remove_all(folder_, ignored);
}

const RunRecord& OracleStore::get(Launcher& launcher, const TrainingSpec& spec,
                                  const DistributedConfig& config) {
  std::unique_ptr<RunRecord>& record = records_[key_of(spec, config)];
  if (record) return *record;
  // All ranks meet here with the same keys in the same order. A try that failed leaves its folder.
  const std::filesystem::path folder =
      folder_ / fmt::format("{}-{}", records_.size(), config.layout());
  const int64_t ranks = config.mesh().world_size();
  launcher.run(ranks, "the " + config.layout() + " run that others are compared with",
               [&](CommPtr comm) {
                 if (comm->rank() != 0) {
                   run_training(comm, spec, config, {[](const Value&) {}});
                   comm->barrier({"", "record", "wait"}).wait();
                   return;
                 }
                 std::filesystem::remove_all(folder);
                 RecordWriter writer(folder);
                 RunObserver observer;
                 observer.show = [&](const Value& value) {
                   // The rows of outputs are on several ranks.
                   if (ranks == 1 || value.key.kind != Kind::kOutput) writer.take(value);
                 };
                 observer.settle = [&] { writer.flush(); };
                 const RunInfo info = run_training(comm, spec, config, observer);
                 writer.finish(info.backward_order);
                 comm->barrier({"", "record", "wait"}).wait();  // all may read it now
               });
  record = std::make_unique<RunRecord>(folder);
  return *record;
}

const RoundingErrors& OracleStore::rounding(Launcher& launcher, const TrainingSpec& spec,
                                            const RunRecord& truth) {
  const auto known = rounding_.find(&truth);
  if (known != rounding_.end()) {
    SP_EXPECT(known->second.dtype == spec.dtype, "this truth is that of runs in {}, not {}",
              toString(known->second.dtype), toString(spec.dtype));
    return known->second;
  }
  const std::filesystem::path file = truth.folder() / "rounding.json";
  const int64_t ranks =
      std::min(launcher.most() > 0 ? launcher.most() : static_cast<int64_t>(2), kRoundingRanks);
  launcher.run(ranks, "the unsharded run and its rounding twins", [&](const CommPtr& comm) {
    const RoundingErrors measured = measure_rounding(*comm, spec, truth);
    if (comm->rank() == 0) write_rounding(file, measured);
    comm->barrier({"", "rounding", "wait"}).wait();
  });
  // All ranks of the program read it: some may not have worked.
  return rounding_[&truth] = read_rounding(file, spec.dtype);
}

}  // namespace shardproof
