#include "io/safetensors_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/names.h"
#include "io/box_runs.h"
#include "io/quote.h"

namespace shardproof {
namespace {

// A gap costs less to read than one more call to the system; a page comes from the disk whole
// anyway.
constexpr int64_t kLargestGap = 4 << 10;
constexpr int64_t kLargestBuffer = 4 << 20;

SafetensorsHeader read_header(const FileHandle& file) {
  std::array<std::byte, kHeaderLengthBytes> start{};
  const int64_t start_size = std::min<int64_t>(file.size(), kHeaderLengthBytes);
  const auto present = std::span(start).first(static_cast<size_t>(start_size));
  file.read_at(0, present);
  const int64_t length = parse_header_length(file.path(), present, file.size());
  std::string text(static_cast<size_t>(length), '\0');
  file.read_at(kHeaderLengthBytes, std::as_writable_bytes(std::span(text)));
  return parse_safetensors_header(file.path(), text, file.size());
}

// Reads the runs one behind the other into `out`; `base` is where the tensor begins in the file.
// Returns the bytes read.
int64_t read_runs(const FileHandle& file, int64_t base, const BoxRuns& runs, std::byte* out) {
  const int64_t run_bytes = runs.run_bytes();
  const auto run_size = static_cast<size_t>(run_bytes);
  std::vector<std::byte> buffer;
  int64_t total = 0;
  for (int64_t first = 0; first < runs.count();) {
    const int64_t start = runs.offset(first);
    int64_t end = start + run_bytes;
    int64_t last = first + 1;
    for (; last < runs.count(); ++last) {
      const int64_t next = runs.offset(last);
      if (next - end > kLargestGap || next + run_bytes - start > kLargestBuffer) break;
      end = next + run_bytes;
    }
    if (last == first + 1) {
      file.read_at(base + start, {out, run_size});
      out += run_bytes;
    } else {
      buffer.resize(static_cast<size_t>(end - start));
      file.read_at(base + start, buffer);
      for (int64_t run = first; run < last; ++run, out += run_bytes)
        std::memcpy(out, buffer.data() + (runs.offset(run) - start), run_size);
    }
    total += end - start;
    first = last;
  }
  return total;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(FileHandle::open(path)), header_(read_header(file_)) {
  for (size_t i = 0; i < header_.entries.size(); ++i) by_name_.emplace(header_.entries[i].name, i);
}

const TensorEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return header_.entries[found->second];
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries()) names.push_back(entry.name);
  const std::string near = nearest_word(name, names);
  throw InputError(fmt::format("{}: has no tensor {}{}", path().string(), quote(name),
                               near.empty() ? "" : "; the nearest is " + quote(near)));
}

at::ScalarType SafetensorsFile::scalar_type(const std::string& name) const {
  const FileDtype dtype = entry(name).dtype;
  const auto type = scalar_type_of(dtype);
  SP_VALIDATE(type.has_value(), "{}: tensor {} is of {}, which ATen has no element type for",
              path().string(), quote(name), dtype_name(dtype));
  return *type;
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  const TensorEntry& whole = entry(name);
  const std::vector<int64_t> begin(whole.shape.size(), 0);
  return read_box(name, begin, whole.shape);
}

at::Tensor SafetensorsFile::read_box(const std::string& name, std::span<const int64_t> begin,
                                     std::span<const int64_t> size) const {
  const TensorEntry& whole = entry(name);
  // Checks the box, before there is memory for it.
  BoxRuns(whole.shape, dtype_bits(whole.dtype) / 8, begin, size);
  at::Tensor out = at::empty(at::IntArrayRef(size.data(), size.size()),
                             at::TensorOptions().dtype(scalar_type(name)).device(at::kCPU));
  read_box_into(name, begin, size, out);
  return out;
}

void SafetensorsFile::read_box_into(const std::string& name, std::span<const int64_t> begin,
                                    std::span<const int64_t> size, const at::Tensor& out) const {
  const TensorEntry& whole = entry(name);
  const at::ScalarType type = scalar_type(name);
  SP_EXPECT(out.scalar_type() == type && out.is_cpu() && out.is_contiguous() &&
                std::ranges::equal(out.sizes(), size),
            "tensor {} [{}] is read into {} [{}] on {} (contiguous: {}): give a contiguous CPU "
            "tensor of the box's shape and of the file's dtype {}",
            quote(name), fmt::join(size, ", "), c10::toString(out.scalar_type()),
            fmt::join(out.sizes(), ", "), out.device().str(), out.is_contiguous(),
            dtype_name(whole.dtype));
  const BoxRuns runs(whole.shape, dtype_bits(whole.dtype) / 8, begin, size);
  if (runs.count() == 0) return;
  auto* data = static_cast<std::byte*>(out.mutable_data_ptr());
  bytes_read_ += read_runs(file_, header_.data_begin + whole.begin, runs, data);
  if (type != at::kBool) return;
  // Any other byte would be a bool that is neither true nor false.
  const std::span bytes(data, out.nbytes());
  const auto bad = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  SP_VALIDATE(bad == bytes.end(), "{}: tensor {} is of BOOL and holds byte {}, neither 0 nor 1",
              path().string(), quote(name), std::to_integer<int>(*bad));
}

}  // namespace shardproof
