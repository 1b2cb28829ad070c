#include "io/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/check.h"
#include "io/quote.h"

namespace shardproof {
namespace {

FileHandle create_beside(const std::filesystem::path& path) {
  // Other processes, also of other machines, may write to the same directory.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::filesystem::path name = path;
    name += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
    if (auto file = FileHandle::create(name)) return std::move(*file);
  }
  throw InputError(fmt::format("{}: 1000 temporary files lie beside it; remove {}.tmp-*",
                               path.string(), path.string()));
}

// The entries with their places in the data.
std::vector<TensorEntry> lay_out(std::span<const TensorDeclaration> tensors) {
  std::unordered_set<std::string> names;
  std::vector<TensorEntry> entries;
  for (const TensorDeclaration& tensor : tensors) {
    SP_EXPECT(tensor.name != kMetadataKey, "a tensor named {}, which the format keeps for itself",
              quote(tensor.name));
    SP_EXPECT(names.insert(tensor.name).second, "tensor {} is declared twice", quote(tensor.name));
    const auto dtype = file_dtype_of(tensor.dtype);
    SP_EXPECT(dtype.has_value(), "tensor {} is of {}, which the safetensors format lacks",
              quote(tensor.name), c10::toString(tensor.dtype));
    entries.push_back({tensor.name, *dtype, tensor.shape});
  }
  std::ranges::stable_sort(entries, std::greater(),
                           [](const TensorEntry& entry) { return dtype_bits(entry.dtype); });
  int64_t offset = 0;
  for (TensorEntry& entry : entries) {
    const auto bytes = tensor_bytes(entry.dtype, entry.shape);
    entry.begin = offset;
    SP_EXPECT(bytes && !__builtin_add_overflow(offset, *bytes, &offset),
              "tensor {} is declared with shape [{}]: its size is negative or overflows",
              quote(entry.name), fmt::join(entry.shape, ", "));
    entry.end = offset;
  }
  return entries;
}

std::string header_text(const std::filesystem::path& path, const std::vector<TensorEntry>& entries,
                        const FileMetadata& metadata) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!metadata.empty()) root[kMetadataKey] = metadata;
  // Through a list: assigning to root[name] would search all the names before it each time.
  auto& members = root.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorEntry& entry : entries) {
    nlohmann::ordered_json fields;
    fields["dtype"] = dtype_name(entry.dtype);
    fields["shape"] = entry.shape;
    fields["data_offsets"] = {entry.begin, entry.end};
    static_cast<nlohmann::ordered_json::object_t::Container&>(members).emplace_back(
        entry.name, std::move(fields));
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: a tensor name or metadata text is not UTF-8: {}",
                                 path.string(), quote(error.what())));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  SP_VALIDATE(static_cast<int64_t>(text.size()) <= kLargestHeader,
              "{}: the header would have {} bytes, above the format's limit of {}", path.string(),
              text.size(), kLargestHeader);
  return text;
}

// So that the new name survives a crash of the machine as the data does.
void sync_directory(const std::filesystem::path& file) {
  const auto parent = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  const int descriptor = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a directory may be writable but not readable
  ::fsync(descriptor);         // not every file system offers it for directories
  ::close(descriptor);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path,
                                     std::span<const TensorDeclaration> tensors,
                                     const FileMetadata& metadata)
    : path_(std::move(path)), file_(create_beside(path_)) {
  try {
    const std::vector<TensorEntry> entries = lay_out(tensors);
    const std::string text = header_text(path_, entries, metadata);
    const auto length = static_cast<uint64_t>(text.size());
    data_begin_ = kHeaderLengthBytes + static_cast<int64_t>(length);
    file_.write_at(0, std::as_bytes(std::span(&length, 1)));
    file_.write_at(kHeaderLengthBytes, std::as_bytes(std::span(text)));
    for (const TensorEntry& entry : entries) slots_.emplace(entry.name, Slot{entry});
  } catch (...) {
    ::unlink(file_.path().c_str());  // no destructor runs after this
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!finished_) ::unlink(file_.path().c_str());
}

void SafetensorsWriter::write(const std::string& name, const at::Tensor& tensor) {
  const auto found = slots_.find(name);
  SP_EXPECT(found != slots_.end(), "{}: tensor {} was not declared", path_.string(), quote(name));
  auto& [entry, written] = found->second;
  SP_EXPECT(!written, "{}: tensor {} is written twice", path_.string(), quote(name));
  SP_EXPECT(tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_meta(),
            "{}: tensor {} has no values to write (undefined, meta or not strided)", path_.string(),
            quote(name));
  SP_EXPECT(file_dtype_of(tensor.scalar_type()) == entry.dtype &&
                std::ranges::equal(tensor.sizes(), entry.shape),
            "{}: tensor {} is {} [{}], but {} [{}] was declared", path_.string(), quote(name),
            c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "),
            dtype_name(entry.dtype), fmt::join(entry.shape, ", "));
  // Conjugation and negation may be a mere flag of the view.
  const at::Tensor data = tensor.detach().resolve_conj().resolve_neg().to(at::kCPU).contiguous();
  file_.write_at(data_begin_ + entry.begin, {static_cast<const std::byte*>(data.const_data_ptr()),
                                             static_cast<size_t>(data.nbytes())});
  written = true;
}

void SafetensorsWriter::finish() {
  SP_EXPECT(!finished_, "{}: finished twice", path_.string());
  for (const auto& [name, slot] : slots_)
    SP_EXPECT(slot.written, "{}: tensor {} was declared and never written", path_.string(),
              quote(name));
  const std::filesystem::path temporary = file_.path();
  file_.sync_and_close();
  std::error_code error;
  std::filesystem::rename(temporary, path_, error);
  SP_VALIDATE(!error, "{}: cannot be given its name (written as {}): {}", path_.string(),
              temporary.string(), error.message());
  finished_ = true;
  sync_directory(path_);
}

void write_safetensors(const std::filesystem::path& path,
                       std::span<const std::pair<std::string, at::Tensor>> tensors,
                       const FileMetadata& metadata) {
  std::vector<TensorDeclaration> declarations;
  for (const auto& [name, tensor] : tensors) {
    SP_EXPECT(tensor.defined(), "{}: tensor {} is undefined", path.string(), quote(name));
    declarations.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  }
  SafetensorsWriter writer(path, declarations, metadata);
  for (const auto& [name, tensor] : tensors) writer.write(name, tensor);
  writer.finish();
}

}  // namespace shardproof
