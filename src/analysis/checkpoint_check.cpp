#include "analysis/checkpoint_check.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/choose_form.h"
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

// Bytes by type, without the tensors named.
std::map<FileDtype, int64_t> bytes_of(const CheckpointFiles& files,
                                      const std::set<std::string>& without = {}) {
  std::map<FileDtype, int64_t> bytes;
  for (const std::string& name : files.names()) {
    if (without.contains(name)) continue;
    const TensorEntry& entry = files.entry(name);
    bytes[entry.dtype] += entry.bytes();
  }
  return bytes;
}

void add_packed(const BoundWeight& weight, std::set<std::string>& packed) {
  if (weight.kind == WeightSource::Kind::kMxfp4)
    packed.insert(weight.tensors.begin(), weight.tensors.end());
  for (const BoundWeight& part : weight.parts) add_packed(part, packed);
}

}  // namespace

Findings check_against(const CheckpointFiles& files, Module& model, const WeightMap& map) {
  Findings findings;
  std::set<std::string> taken, packed;
  for (const ParamPtr& parameter : model.all_parameters()) {
    std::vector<BoundWeight> forms;
    try {
      forms = found_forms(*parameter, files, map);
    } catch (const InputError& error) {
      findings.push_back(about(parameter->name(), error.what()));
    }
    for (BoundWeight& form : forms) {
      for (std::string& tensor : tensor_names(form)) taken.insert(std::move(tensor));
      add_packed(form, packed);
      try {
        check_against_files(form, files);
      } catch (const InputError& error) {
        findings.push_back(about(parameter->name(), error.what()));
      }
    }
  }
  for (const std::string& name : files.names()) {
    if (!taken.contains(name) && !is_ignored(map, name))
      findings.push_back(
          about(name, fmt::format("{}: the model of config.json has no parameter for {}",
                                  files.file_of(name).path().string(), quote(name))));
  }
  if (const auto bytes = bytes_of(files, packed); bytes.size() > 1) {
    std::vector<std::string> types;
    for (const auto& [dtype, count] : bytes)
      types.push_back(fmt::format("{} ({} bytes)", dtype_name(dtype), count));
    findings.push_back(about("", fmt::format("{}: the files hold several types: {}",
                                             files.path().string(), fmt::join(types, ", "))));
    findings.back().severity = Finding::Severity::kNote;
  }
  return findings;
}

}  // namespace shardproof
