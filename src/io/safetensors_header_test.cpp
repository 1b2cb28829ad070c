#include "io/safetensors_header.h"

#include "io/safetensors_file.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

TEST_F(IoTest, HeaderGivesEntriesInOrderOfTheirData) {
  const std::string text =
      R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
      R"("__metadata__":{"format":"pt","k":""},)"
      R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"I32"},"e":{"dtype":"F64","shape":[0,3],"data_offsets":[4,4]}}  )";
  const auto size = static_cast<int64_t>(8 + text.size() + 12);
  const SafetensorsHeader header = parse_safetensors_header("f", text, size);

  ASSERT_EQ(header.entries.size(), 3u);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].dtype, FileDtype::kI32);
  EXPECT_EQ(header.entries[0].elements(), 1);
  EXPECT_EQ(header.entries[1].name, "e");
  EXPECT_EQ(header.entries[1].elements(), 0);
  EXPECT_EQ(header.entries[2].name, "b");
  EXPECT_EQ(header.entries[2].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(header.entries[2].begin, 4);
  EXPECT_EQ(header.entries[2].end, 12);
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"k", ""}}));
  EXPECT_EQ(header.data_begin, static_cast<int64_t>(8 + text.size()));
}

TEST(TensorBytes, CountsBitsAndRefusesOverflow) {
  const auto bytes = [](FileDtype dtype, std::vector<int64_t> shape) {
    return tensor_bytes(dtype, shape);
  };
  EXPECT_EQ(bytes(FileDtype::kF32, {}), 4);
  EXPECT_EQ(bytes(FileDtype::kF64, {3, 5}), 120);
  EXPECT_EQ(bytes(FileDtype::kF4, {3, 2}), 3);
  EXPECT_EQ(bytes(FileDtype::kF6E2M3, {4}), 3);
  EXPECT_EQ(bytes(FileDtype::kF32, {7, 0}), 0);
  EXPECT_EQ(bytes(FileDtype::kF4, {3}), std::nullopt);
  EXPECT_EQ(bytes(FileDtype::kU8, {-1, -1}), std::nullopt);
  EXPECT_EQ(bytes(FileDtype::kU8, {INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(bytes(FileDtype::kU8, {0, INT64_MAX, INT64_MAX}), std::nullopt);
}

// A header text with some data behind it, and what the error must say besides the file's name.
struct Malformed {
  const char* kind;
  std::string header;
  int data;
  std::vector<std::string> says;
};

std::string deep(int levels) { return R"({"x":)" + std::string(static_cast<size_t>(levels), '['); }

std::string one(const std::string& fields) { return R"({"w.x":{)" + fields + "}}"; }

std::vector<Malformed> malformed() {
  const std::string huge = "4611686018427387904";
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  return {
      {"Empty", "", 0, {"not a JSON object"}},
      {"NotJson", "hello", 0, {"not a JSON object", "'hello'"}},
      {"CutJson", R"({"w.x":{"dtype":)", 0, {"not JSON"}},
      {"Array", "[]", 0, {"not a JSON object"}},
      {"TwoObjects", "{}{}", 0, {"not JSON"}},
      {"ZeroByte", std::string("{}\0 {", 5), 0, {"not JSON", "zero byte at 2"}},
      {"BadUtf8", "{\"\xff\":1}", 0, {"not JSON"}},
      {"Deep", deep(9), 0, {"'x'", "nested more than 8"}},
      {"VeryDeep", deep(5'000'000), 0, {"'x'", "nested more than 8"}},
      {"DuplicateTensor",
       R"({"w.x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("w.x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2,
       {"'w.x' twice"}},
      {"DuplicateByEscape",
       R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("\u0077":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0,
       {"'w' twice"}},
      {"DuplicateField",
       one(R"("dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "'dtype' twice"}},
      {"NotAnObject", R"({"w.x":3})", 0, {"tensor 'w.x'", "number instead of an object"}},
      {"NoDtype", one(R"("shape":[1],"data_offsets":[0,1])"), 1, {"'w.x'", "no dtype"}},
      {"NoShape", one(R"("dtype":"U8","data_offsets":[0,1])"), 1, {"'w.x'", "no shape"}},
      {"NoOffsets", one(R"("dtype":"U8","shape":[1])"), 1, {"'w.x'", "no data_offsets"}},
      {"UnknownField",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"strides":[1])"),
       1,
       {"'w.x'", "'strides'"}},
      {"UnknownDtype",
       one(R"("dtype":"F128","shape":[1],"data_offsets":[0,16])"),
       16,
       {"'w.x'", "unknown dtype 'F128'"}},
      {"DtypeNumber", one(R"("dtype":5,"shape":[1],"data_offsets":[0,1])"), 1, {"'w.x'", "dtype"}},
      {"ShapeText", one(R"("dtype":"U8","shape":"1","data_offsets":[0,1])"), 1, {"'w.x'", "shape"}},
      {"ShapeNull", one(R"("dtype":"U8","shape":[null],"data_offsets":[0,1])"), 1, {"'w.x'"}},
      {"NegativeShape",
       one(R"("dtype":"U8","shape":[-1,-1],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "shape holds '-1'"}},
      {"FractionalShape",
       one(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "shape holds '1.0'"}},
      {"ShapeAbove63Bits",
       one(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "shape holds '9223372036854775808'"}},
      {"ShapeAbove64Bits",
       one(R"("dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "shape holds"}},
      {"ManyDimensions",
       one(R"("dtype":"U8","shape":[)" + many + R"(],"data_offsets":[0,1])"),
       1,
       {"'w.x'", "more than 64"}},
      {"HugeShape",
       one(R"("dtype":"F32","shape":[)" + huge + R"(],"data_offsets":[0,4])"),
       4,
       {"'w.x'", huge, "overflows"}},
      {"OverflowingProduct",
       one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
       0,
       {"'w.x'", "overflows"}},
      {"OverflowBesideZero",
       one(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"),
       0,
       {"'w.x'", "overflows"}},
      {"LargeButConsistent",
       one(R"("dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776])"),
       8,
       {"'w.x'", "1099511627776", "8 bytes of data", "cut"}},
      {"OffsetsCount",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])"),
       1,
       {"'w.x'", "3 numbers instead of 2"}},
      {"NegativeOffset",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[-1,0])"),
       1,
       {"'w.x'", "data_offsets holds '-1'"}},
      {"BackwardOffsets",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"),
       1,
       {"'w.x'", "[1, 0]", "end before they begin"}},
      {"OutOfRange",
       one(R"("dtype":"U8","shape":[4],"data_offsets":[8,12])"),
       4,
       {"'w.x'", "[8, 12]", "beyond the 4 bytes"}},
      {"WrongSize",
       one(R"("dtype":"F32","shape":[2,1],"data_offsets":[0,4])"),
       4,
       {"'w.x'", "give 4 bytes", "[2, 1]", "F32 takes 8"}},
      {"Overlap",
       R"({"w.x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("y":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       4,
       {"tensor 'y' at [2, 4] overlaps tensor 'w.x' at [0, 3]"}},
      {"SamePlace",
       R"({"w.x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("y":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
       3,
       {"'y'", "overlaps", "'w.x'"}},
      {"EmptyInsideAnother",
       R"({"w.x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("y":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
       3,
       {"'y'", "overlaps", "'w.x'"}},
      {"Hole",
       R"({"w.x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
       4,
       {"hole of 2 bytes", "'y' at [3, 4]"}},
      {"HoleInFront",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"),
       2,
       {"hole of 1 bytes", "'w.x'"}},
      {"Junk",
       one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"),
       4,
       {"3 bytes behind its last tensor 'w.x'"}},
      {"JunkAlone", "{}", 1, {"1 bytes behind"}},
      {"MetadataNumber", R"({"__metadata__":{"step":1}})", 0, {"__metadata__", "'step'", "number"}},
      {"MetadataArray", R"({"__metadata__":[]})", 0, {"__metadata__", "array"}},
      {"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0, {"'__metadata__' twice"}},
      {"NewlineInName", R"({"a\nb":3})", 0, {R"('a\x0ab')"}},
  };
}

class MalformedHeader : public IoTest, public testing::WithParamInterface<Malformed> {};

TEST_P(MalformedHeader, IsRefusedByName) {
  const Malformed& given = GetParam();
  const auto path = put("bad.safetensors",
                        raw_file(given.header, std::string(static_cast<size_t>(given.data), '\0')));
  const std::string message = input_error([&] { SafetensorsFile{path}; });
  EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
  EXPECT_LT(message.size(), 1000u);
  for (const std::string& part : given.says) EXPECT_NE(message.find(part), message.npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, MalformedHeader, testing::ValuesIn(malformed()),
                         [](const auto& info) { return std::string(info.param.kind); });

TEST_F(IoTest, HeaderLengthMustFitTheFile) {
  const auto error_for = [&](std::string bytes) {
    const auto path = put("f.safetensors", bytes);
    const std::string message = input_error([&] { SafetensorsFile{path}; });
    EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
    return message;
  };
  EXPECT_NE(error_for("").find("has 0 bytes, fewer than the 8"), std::string::npos);
  EXPECT_NE(error_for("1234567").find("has 7 bytes, fewer than the 8"), std::string::npos);
  EXPECT_NE(error_for(std::string(8, '\xff')).find("limit of 100000000"), std::string::npos);
  EXPECT_NE(error_for(raw_file("{}", "").substr(0, 9)).find("2 bytes, but only 1 bytes follow"),
            std::string::npos);
}

}  // namespace
}  // namespace shardproof
