#include "io/checkpoint_index.h"

#include <algorithm>
#include <limits>
#include <set>
#include <system_error>

#include "base/check.h"
#include "base/names.h"
#include "io/quote.h"
#include "io/strict_json.h"
#include "io/text_file.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr int64_t kLargestIndex = int64_t{256} << 20;

// False also where it cannot be told; opening the file then says why.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The file name of an index entry, with "." steps taken out. Both separators count: an index may
// have been written on another system.
std::string checked_file_name(const fs::path& index, const std::string& tensor,
                              const std::string& file) {
  const std::string where =
      fmt::format("{}: tensor {} is in {}", index.string(), quote(tensor), quote(file));
  std::string plain = file;
  std::ranges::replace(plain, '\\', '/');
  const std::vector<std::string> steps = split(plain, '/');
  const bool has_drive = plain.size() >= 2 && plain[1] == ':';
  SP_VALIDATE(!plain.starts_with('/') && !has_drive && !std::ranges::count(steps, "..") &&
                  !std::ranges::count(file, '\0'),
              "{}, outside the directory of the index; only files within it are read", where);
  SP_VALIDATE(!steps.back().empty() && steps.back() != ".", "{}, which is not a file name", where);
  SP_VALIDATE(plain == file, "{}, with a '\\' in its name; write '/'", where);
  return fs::path(file).lexically_normal().string();
}

// Tensor name -> file name, as the index gives them.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const JsonLimits limits{.depth = 32, .array_items = std::numeric_limits<int64_t>::max()};
  const nlohmann::json root =
      parse_strict_json(read_text_file(index, kLargestIndex), index.string(), limits);
  SP_VALIDATE(root.is_object() && root.contains("weight_map"), "{}: has no object \"weight_map\"",
              index.string());
  const nlohmann::json& map = root["weight_map"];
  SP_VALIDATE(map.is_object(), "{}: weight_map is a JSON {} instead of an object", index.string(),
              map.type_name());
  SP_VALIDATE(!map.empty(), "{}: weight_map names no tensor", index.string());
  std::map<std::string, std::string> result;
  for (const auto& item : map.items()) {
    SP_VALIDATE(item.value().is_string(),
                "{}: the file of tensor {} is a JSON {} instead of a string", index.string(),
                quote(item.key()), item.value().type_name());
    result[item.key()] =
        checked_file_name(index, item.key(), item.value().get_ref<const std::string&>());
  }
  return result;
}

// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& items) {
  constexpr size_t kShown = 20;
  const std::span shown(items.data(), std::min(items.size(), kShown));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (items.size() > kShown) text += fmt::format(" and {} more", items.size() - kShown);
  return text;
}

}  // namespace

CheckpointFiles::CheckpointFiles(const fs::path& path) : path_(path) {
  SP_VALIDATE(is_there(path), "{}: no such file or directory", path.string());
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const bool single = is_there(path / kSingleFile);
    SP_VALIDATE(single || is_there(path / kIndexFile), "{}: has neither {} nor {}", path.string(),
                kSingleFile, kIndexFile);
    if (single)
      open_file(path / kSingleFile);
    else
      open_index(path / kIndexFile);
  } else if (path.filename().string().ends_with("index.json")) {
    open_index(path);
  } else {
    open_file(path);
  }
  for (const auto& [name, file] : owners_) names_.push_back(name);
  std::ranges::sort(names_);
}

void CheckpointFiles::open_file(const fs::path& path) {
  const SafetensorsFile* file = files_.emplace_back(std::make_unique<SafetensorsFile>(path)).get();
  for (const TensorEntry& entry : file->entries()) {
    const auto [other, added] = owners_.emplace(entry.name, file);
    SP_VALIDATE(added, "{}: tensor {} is also in {}: which one holds is not defined", path.string(),
                quote(entry.name), other->second->path().string());
  }
}

void CheckpointFiles::open_index(const fs::path& path) {
  const std::map<std::string, std::string> weight_map = read_weight_map(path);
  const fs::path directory = path.parent_path();
  std::set<std::string> file_names;
  for (const auto& [tensor, file] : weight_map) file_names.insert(file);

  std::vector<std::string> missing;
  for (const std::string& file : file_names)
    if (!is_there(directory / file)) missing.push_back(quote(file));
  SP_VALIDATE(missing.empty(), "{}: names {} file(s) that are not there: {}; complete the download",
              path.string(), missing.size(), listed(missing));

  for (const std::string& file : file_names) open_file(directory / file);

  std::vector<std::string> lacking;
  for (const auto& [tensor, file] : weight_map) {
    const auto owner = owners_.find(tensor);
    if (owner == owners_.end() || owner->second->path() != directory / file)
      lacking.push_back(fmt::format("{} in {}", quote(tensor), quote(file)));
  }
  SP_VALIDATE(lacking.empty(), "{}: places {} tensor(s) in files that lack them: {}", path.string(),
              lacking.size(), listed(lacking));
}

const SafetensorsFile& CheckpointFiles::file_of(const std::string& name) const {
  const auto found = owners_.find(name);
  if (found != owners_.end()) return *found->second;
  const std::string near = nearest_word(name, names_);
  throw InputError(fmt::format("{}: no file of the checkpoint has a tensor {}{}", path_.string(),
                               quote(name), near.empty() ? "" : "; the nearest is " + quote(near)));
}

const TensorEntry& CheckpointFiles::entry(const std::string& name) const {
  return file_of(name).entry(name);
}

at::ScalarType CheckpointFiles::scalar_type(const std::string& name) const {
  return file_of(name).scalar_type(name);
}

at::Tensor CheckpointFiles::read(const std::string& name) const { return file_of(name).read(name); }

at::Tensor CheckpointFiles::read_box(const std::string& name, std::span<const int64_t> begin,
                                     std::span<const int64_t> size) const {
  return file_of(name).read_box(name, begin, size);
}

void CheckpointFiles::read_box_into(const std::string& name, std::span<const int64_t> begin,
                                    std::span<const int64_t> size, const at::Tensor& out) const {
  file_of(name).read_box_into(name, begin, size, out);
}

int64_t CheckpointFiles::bytes_read() const {
  int64_t total = 0;
  for (const auto& file : files_) total += file->bytes_read();
  return total;
}

}  // namespace shardproof
