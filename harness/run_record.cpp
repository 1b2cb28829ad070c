#include "harness/run_record.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "io/read_region.h"
#include "io/safetensors_writer.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

constexpr const char* kIndexFile = "index.json";

// Execution order between kinds: the values of the first step, then losses and norms step by step,
// then what the steps led to.
std::pair<int64_t, int> phase(const ValueKey& key) {
  constexpr int64_t kAfterAllSteps = int64_t{1} << 40;
  if (key.kind == Kind::kParameter || key.kind == Kind::kMoment)
    return {kAfterAllSteps, static_cast<int>(key.kind)};
  return {key.step, static_cast<int>(key.kind)};
}

}  // namespace

int64_t RecordEntry::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

RecordWriter::RecordWriter(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
}

void RecordWriter::take(const Value& value) {
  RecordEntry entry;
  entry.key = value.key;
  entry.present = value.local.defined();
  if (entry.present) {
    entry.shape = value.local.sizes().vec();
    SP_EXPECT(value.part(entry.shape).region == whole_region(entry.shape),
              "{} is recorded by a rank that does not hold all of it", value.key.to_string());
    entry.norm = value.local.to(at::kDouble).norm().item<double>();
    entry.file = fmt::format("{}.{}.safetensors", kind_name(entry.key.kind), entry.key.step);
  }
  waiting_.emplace_back(std::move(entry), value.local);
}

void RecordWriter::flush() {
  std::map<std::string, std::vector<std::pair<std::string, at::Tensor>>> files;
  for (auto& [entry, tensor] : waiting_) {
    if (entry.present) files[entry.file].emplace_back(entry.key.name, tensor);
    entries_.push_back(std::move(entry));
  }
  waiting_.clear();
  for (const auto& [file, tensors] : files) {
    SP_EXPECT(!std::filesystem::exists(folder_ / file), "{} would be written twice", file);
    write_safetensors(folder_ / file, tensors);
  }
}

void RecordWriter::finish(const std::vector<std::string>& backward_order) {
  flush();
  std::map<std::string, size_t> backward;
  for (const std::string& name : backward_order) backward.emplace(name, backward.size());
  const auto place = [&](const RecordEntry& entry) {
    const auto found = backward.find(entry.key.name);
    const bool gradient = entry.key.kind == Kind::kGradient;
    return gradient && found != backward.end() ? found->second : backward.size();
  };
  std::stable_sort(entries_.begin(), entries_.end(), [&](const auto& a, const auto& b) {
    return std::pair(phase(a.key), place(a)) < std::pair(phase(b.key), place(b));
  });
  nlohmann::json index = nlohmann::json::array();
  for (const RecordEntry& entry : entries_)
    index.push_back({{"kind", kind_name(entry.key.kind)},
                     {"name", entry.key.name},
                     {"step", entry.key.step},
                     {"present", entry.present},
                     {"shape", entry.shape},
                     {"norm", entry.norm},
                     {"file", entry.file}});
  std::ofstream out(folder_ / kIndexFile);
  out << index;
  out.close();
  SP_VALIDATE(!out.fail(), "{}: could not be written", (folder_ / kIndexFile).string());
}

RunRecord::RunRecord(const std::filesystem::path& folder) : folder_(folder) {
  const auto index = nlohmann::json::parse(read_text_file(folder / kIndexFile));
  for (const auto& item : index) {
    RecordEntry entry;
    entry.key = {kind_from_name(item.at("kind")), item.at("name"), item.at("step")};
    entry.order = static_cast<int64_t>(entries_.size());
    entry.present = item.at("present");
    entry.shape = item.at("shape").get<std::vector<int64_t>>();
    // A norm that was not finite is null: it passes nothing.
    entry.norm = item.at("norm").is_null() ? std::nan("") : item.at("norm").get<double>();
    entry.file = item.at("file");
    if (entry.present && !files_.contains(entry.file))
      files_[entry.file] = std::make_unique<SafetensorsFile>(folder / entry.file);
    index_[entry.key] = entries_.size();
    double& norm = norms_[{entry.key.kind, entry.key.step}];
    norm = std::hypot(norm, entry.norm);
    entries_.push_back(std::move(entry));
  }
}

const RecordEntry* RunRecord::find(const ValueKey& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

at::Tensor RunRecord::read(const RecordEntry& entry, const Region& region) const {
  SP_EXPECT(entry.present, "{} was recorded as missing", entry.key.to_string());
  return read_region(*files_.at(entry.file), entry.key.name, region);
}

double RunRecord::norm_of_kind(Kind kind, int64_t step) const {
  const auto found = norms_.find({kind, step});
  return found == norms_.end() ? 0 : found->second;
}

}  // namespace shardproof
