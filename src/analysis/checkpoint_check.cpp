#include "analysis/checkpoint_check.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "io/quote.h"

namespace shardproof {
namespace {

Finding about(const std::string& subject, std::string message) {
  return {.severity = Finding::Severity::kError,
          .check = "checkpoint",
          .rule = {},
          .subject = subject,
          .message = std::move(message)};
}

// Bytes by type.
std::map<FileDtype, int64_t> bytes_of(const CheckpointFiles& files) {
  std::map<FileDtype, int64_t> bytes;
  for (const std::string& name : files.names()) {
    const TensorEntry& entry = files.entry(name);
    bytes[entry.dtype] += entry.bytes();
  }
  return bytes;
}

}  // namespace

Findings check_against(const CheckpointFiles& files, Module& model) {
  Findings findings;
  std::set<std::string> taken;
  for (const ParamPtr& parameter : model.all_parameters()) {
    bool found = false;
    for (const std::string& name : parameter->names()) {
      if (!files.contains(name)) continue;
      found = true;
      taken.insert(name);
      const TensorEntry& entry = files.entry(name);
      if (entry.shape != parameter->shape())
        findings.push_back(about(
            name, fmt::format("{}: {} is {} there, the model of config.json declares {}",
                              files.file_of(name).path().string(), name,
                              fmt::join(entry.shape, "x"), fmt::join(parameter->shape(), "x"))));
    }
    if (!found)
      findings.push_back(
          about(parameter->name(),
                fmt::format("{}: {} ({}), which the model of config.json declares, is not there",
                            files.path().string(), parameter->name(),
                            fmt::join(parameter->shape(), "x"))));
  }
  for (const std::string& name : files.names()) {
    if (!taken.contains(name))
      findings.push_back(
          about(name, fmt::format("{}: the model of config.json has no parameter for {}",
                                  files.file_of(name).path().string(), quote(name))));
  }
  if (const auto bytes = bytes_of(files); bytes.size() > 1) {
    std::vector<std::string> types;
    for (const auto& [dtype, count] : bytes)
      types.push_back(fmt::format("{} ({} bytes)", dtype_name(dtype), count));
    findings.push_back(about("", fmt::format("{}: the files hold several types: {}",
                                             files.path().string(), fmt::join(types, ", "))));
    findings.back().severity = Finding::Severity::kNote;
  }
  return findings;
}

std::optional<at::ScalarType> main_dtype(const CheckpointFiles& files) {
  const auto bytes = bytes_of(files);
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? std::nullopt : scalar_type_of(most->first);
}

}  // namespace shardproof
