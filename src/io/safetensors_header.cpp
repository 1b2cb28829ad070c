#include "io/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "io/quote.h"
#include "io/strict_json.h"

namespace shardproof {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

constexpr size_t kMostDimensions = 64;  // as many as ATen's kernels take

// Reads the description of one tensor; `where` begins every message: "FILE: tensor 'NAME'".
class EntryParser {
 public:
  EntryParser(std::string where, const json& fields) : where_(std::move(where)), fields_(fields) {}

  TensorEntry parse(const std::string& name, int64_t data_size) const {
    SP_VALIDATE(fields_.is_object(), "{}: is described by a JSON {} instead of an object", where_,
                fields_.type_name());
    for (const auto& item : fields_.items())
      SP_VALIDATE(item.key() == "dtype" || item.key() == "shape" || item.key() == "data_offsets",
                  "{}: has the field {}, which is not of the format (dtype, shape, data_offsets)",
                  where_, quote(item.key()));
    TensorEntry entry;
    entry.name = name;
    entry.dtype = dtype();
    entry.shape = numbers("shape");
    const std::vector<int64_t> offsets = numbers("data_offsets");
    SP_VALIDATE(offsets.size() == 2, "{}: data_offsets has {} numbers instead of 2", where_,
                offsets.size());
    entry.begin = offsets[0];
    entry.end = offsets[1];
    check_range(entry, data_size);
    return entry;
  }

 private:
  const json& field(const char* key) const {
    const auto found = fields_.find(key);
    SP_VALIDATE(found != fields_.end(), "{}: has no {}", where_, key);
    return *found;
  }

  FileDtype dtype() const {
    const json& value = field("dtype");
    SP_VALIDATE(value.is_string(), "{}: dtype is a JSON {} instead of a string", where_,
                value.type_name());
    const auto& name = value.get_ref<const std::string&>();
    const auto dtype = parse_dtype(name);
    SP_VALIDATE(dtype.has_value(), "{}: unknown dtype {}", where_, quote(name));
    return *dtype;
  }

  std::vector<int64_t> numbers(const char* key) const {
    const json& values = field(key);
    SP_VALIDATE(values.is_array(), "{}: {} is a JSON {} instead of an array", where_, key,
                values.type_name());
    SP_VALIDATE(values.size() <= kMostDimensions, "{}: {} has {} numbers, more than {}", where_,
                key, values.size(), kMostDimensions);
    std::vector<int64_t> result;
    for (const json& value : values) {
      // Numbers that no 64-bit integer holds come from the parser as floating point.
      SP_VALIDATE(value.is_number_unsigned() &&
                      value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()},
                  "{}: {} holds {}, which is not an integer from 0 to 2^63 - 1", where_, key,
                  quote(value.dump(-1, ' ', false, json::error_handler_t::replace)));
      result.push_back(value.get<int64_t>());
    }
    return result;
  }

  void check_range(const TensorEntry& entry, int64_t data_size) const {
    const auto bytes = tensor_bytes(entry.dtype, entry.shape);
    SP_VALIDATE(bytes.has_value(),
                "{}: shape [{}] of {} has a size that overflows or is not whole bytes", where_,
                fmt::join(entry.shape, ", "), dtype_name(entry.dtype));
    SP_VALIDATE(entry.begin <= entry.end, "{}: data_offsets [{}, {}] end before they begin", where_,
                entry.begin, entry.end);
    SP_VALIDATE(entry.bytes() == *bytes,
                "{}: data_offsets [{}, {}] give {} bytes, but shape [{}] of {} takes {}", where_,
                entry.begin, entry.end, entry.bytes(), fmt::join(entry.shape, ", "),
                dtype_name(entry.dtype), *bytes);
    SP_VALIDATE(entry.end <= data_size,
                "{}: data_offsets [{}, {}] reach beyond the {} bytes of data in the file: the file "
                "is cut; get a whole copy",
                where_, entry.begin, entry.end, data_size);
  }

  std::string where_;
  const json& fields_;
};

std::map<std::string, std::string> parse_metadata(const std::filesystem::path& file,
                                                  const json& values) {
  SP_VALIDATE(values.is_object(), "{}: {} is a JSON {} instead of an object", file.string(),
              kMetadataKey, values.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& item : values.items()) {
    SP_VALIDATE(item.value().is_string(), "{}: {} {} is a JSON {} instead of a string",
                file.string(), kMetadataKey, quote(item.key()), item.value().type_name());
    metadata.emplace(item.key(), item.value().get<std::string>());
  }
  return metadata;
}

// `entries` in the order of their data.
void check_coverage(const std::filesystem::path& file, const std::vector<TensorEntry>& entries,
                    int64_t data_size) {
  const TensorEntry* previous = nullptr;
  int64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    SP_VALIDATE(entry.begin >= covered, "{}: tensor {} at [{}, {}] overlaps tensor {} at [{}, {}]",
                file.string(), quote(entry.name), entry.begin, entry.end, quote(previous->name),
                previous->begin, previous->end);
    SP_VALIDATE(entry.begin == covered,
                "{}: a hole of {} bytes lies before tensor {} at [{}, {}]: the data before it ends "
                "at {}",
                file.string(), entry.begin - covered, quote(entry.name), entry.begin, entry.end,
                covered);
    covered = entry.end;
    previous = &entry;
  }
  SP_VALIDATE(covered == data_size,
              "{}: has {} bytes behind its last tensor {}: the tensors end at byte {} of the data "
              "and the file at {}; get a clean copy",
              file.string(), data_size - covered, previous ? quote(previous->name) : "(none)",
              covered, data_size);
}

}  // namespace

int64_t TensorEntry::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::optional<int64_t> tensor_bytes(FileDtype dtype, std::span<const int64_t> shape) {
  int64_t bits = dtype_bits(dtype);
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bits, std::max<int64_t>(size, 1), &bits))
      return std::nullopt;
    empty = empty || size == 0;
  }
  if (empty) return 0;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

int64_t parse_header_length(const std::filesystem::path& file, std::span<const std::byte> start,
                            int64_t file_size) {
  SP_VALIDATE(file_size >= kHeaderLengthBytes && start.size() >= size_t{kHeaderLengthBytes},
              "{}: has {} bytes, fewer than the 8 that a safetensors file begins with: the file is "
              "cut; get a whole copy",
              file.string(), file_size);
  uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  SP_VALIDATE(length <= uint64_t{kLargestHeader},
              "{}: claims a header of {} bytes, above the format's limit of {}: not a safetensors "
              "file, or a damaged one",
              file.string(), length, kLargestHeader);
  const auto header = static_cast<int64_t>(length);
  SP_VALIDATE(header <= file_size - kHeaderLengthBytes,
              "{}: claims a header of {} bytes, but only {} bytes follow: the file is cut; get a "
              "whole copy",
              file.string(), header, file_size - kHeaderLengthBytes);
  return header;
}

SafetensorsHeader parse_safetensors_header(const std::filesystem::path& file, std::string_view text,
                                           int64_t file_size) {
  SP_VALIDATE(text.starts_with('{'), "{}: header is not a JSON object: it begins with {}",
              file.string(), quote(text.substr(0, 16)));
  const json root = parse_strict_json(text, fmt::format("{}: header", file.string()));
  SafetensorsHeader header;
  header.data_begin = kHeaderLengthBytes + static_cast<int64_t>(text.size());
  const int64_t data_size = file_size - header.data_begin;
  SP_EXPECT(data_size >= 0, "a header of {} bytes in a file of {}", text.size(), file_size);
  for (const auto& item : root.items()) {
    if (item.key() == kMetadataKey) {
      header.metadata = parse_metadata(file, item.value());
      continue;
    }
    EntryParser parser(fmt::format("{}: tensor {}", file.string(), quote(item.key())),
                       item.value());
    header.entries.push_back(parser.parse(item.key(), data_size));
  }
  std::ranges::sort(header.entries, [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_coverage(file, header.entries, data_size);
  return header;
}

}  // namespace shardproof
