#include "io/safetensors_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "io/safetensors_file.h"
#include "io/test_files.h"

namespace shardproof {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

class WriterTest : public IoTest {
 protected:
  std::filesystem::path path() const { return directory() / "w.safetensors"; }

  size_t files_in_directory() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory()), {}));
  }
};

constexpr at::ScalarType kAllTypes[] = {
    at::kBool,           at::kByte,           at::kChar,
    at::kShort,          at::kUInt16,         at::kInt,
    at::kUInt32,         at::kLong,           at::kUInt64,
    at::kHalf,           at::kBFloat16,       at::kFloat,
    at::kDouble,         at::kComplexFloat,   at::kFloat8_e4m3fn,
    at::kFloat8_e5m2,    at::kFloat8_e8m0fnu, at::kFloat8_e4m3fnuz,
    at::kFloat8_e5m2fnuz};

// Distinct bit patterns; for bool 0 and 1.
at::Tensor patterns(at::ScalarType type) {
  const auto width = static_cast<int64_t>(c10::elementSize(type));
  at::Tensor bytes = at::arange(15 * width, at::kLong).mul(7).add(3).to(at::kByte);
  if (type == at::kBool) bytes = bytes.bitwise_and(1);
  return bytes.view(type).view({3, 5});
}

TEST_F(WriterTest, EveryDtypeSurvivesWithItsBits) {
  Named tensors;
  for (const at::ScalarType type : kAllTypes) {
    tensors.emplace_back(std::string("whole ") + c10::toString(type), patterns(type));
    tensors.emplace_back(std::string("view ") + c10::toString(type), patterns(type).t());
  }
  write_safetensors(path(), tensors);

  const SafetensorsFile file(path());
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(file.scalar_type(name), tensor.scalar_type()) << name;
    EXPECT_TRUE(same_bytes(file.read(name), tensor)) << name;
  }
}

TEST_F(WriterTest, LayoutIsAlignedAndMarked) {
  write_safetensors(path(), Named{{"c", at::ones({3}, at::kByte)},
                                  {"a", at::ones({3}, at::kBFloat16)},
                                  {"b", at::ones({1}, at::kDouble)}});
  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata(), (FileMetadata{{"format", "pt"}}));
  uint64_t length = 0;
  std::memcpy(&length, file_bytes(path()).data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  for (const TensorEntry& entry : file.entries())
    EXPECT_EQ(entry.begin % (dtype_bits(entry.dtype) / 8), 0) << entry.name;
}

// Case 6: emptiness is not sharing, and sharing is not an error.
TEST_F(WriterTest, EmptyScalarViewedAndSharedTensorsSurvive) {
  const at::Tensor base = at::arange(12, at::kFloat).view({3, 4});
  const Named tensors{{"empty 1", at::empty({0}, at::kFloat)},
                      {"empty 2", at::empty({0}, at::kFloat)},
                      {"empty rows", at::empty({0, 5}, at::kDouble)},
                      {"empty columns", at::empty({5, 0}, at::kBool)},
                      {"scalar", at::scalar_tensor(2.5, at::kDouble)},
                      {"base", base},
                      {"transposed", base.t()},
                      {"same storage", base},
                      {"part of it", base.narrow(1, 1, 2)},
                      {"expanded", base.narrow(1, 0, 1).expand({3, 6})}};
  write_safetensors(path(), tensors);
  const SafetensorsFile file(path());
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bytes(file.read(name), tensor)) << name;
    EXPECT_EQ(file.read(name).sizes(), tensor.sizes()) << name;
  }
  EXPECT_EQ(file.read("scalar").item<double>(), 2.5);
}

TEST_F(WriterTest, MetadataAloneIsAFile) {
  write_safetensors(path(), Named{}, {{"format", "pt"}, {"note", "\"quoted\"\n"}});
  const SafetensorsFile file(path());
  EXPECT_TRUE(file.entries().empty());
  EXPECT_EQ(file.metadata(), (FileMetadata{{"format", "pt"}, {"note", "\"quoted\"\n"}}));
  write_safetensors(path(), Named{}, {});
  EXPECT_TRUE(SafetensorsFile(path()).metadata().empty());
}

TEST_F(WriterTest, GradientsAndConjugateViewsAreWrittenByValue) {
  const at::Tensor z = at::complex(at::full({2}, 3.0f), at::full({2}, 4.0f));
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  write_safetensors(path(),
                    Named{{"z", z.conj()}, {"imaginary", at::imag(z.conj())}, {"leaf", leaf}});
  const SafetensorsFile file(path());
  EXPECT_EQ(at::imag(file.read("z")).sum().item<float>(), -8);
  EXPECT_EQ(file.read("imaginary").sum().item<float>(), -8);
  EXPECT_FALSE(file.read("leaf").requires_grad());
}

TEST_F(WriterTest, TensorsAreWrittenInAnyOrder) {
  const std::vector<TensorDeclaration> declared{{"a", at::kFloat, {2}}, {"b", at::kDouble, {3}}};
  SafetensorsWriter writer(path(), declared);
  writer.write("b", at::full({3}, 2.0, at::kDouble));
  EXPECT_FALSE(std::filesystem::exists(path()));
  writer.write("a", at::full({2}, 1.0f));
  writer.finish();
  const SafetensorsFile file(path());
  EXPECT_EQ(file.read("a").sum().item<float>(), 2);
  EXPECT_EQ(file.read("b").sum().item<double>(), 6);
  EXPECT_EQ(files_in_directory(), 1u);
}

TEST_F(WriterTest, UnfinishedFilesLeaveThePreviousOne) {
  write_safetensors(path(), Named{{"a", at::ones({2})}});
  const std::string before = file_bytes(path());
  {
    const std::vector<TensorDeclaration> declared{{"a", at::kFloat, {2}}, {"b", at::kFloat, {2}}};
    SafetensorsWriter writer(path(), declared);
    writer.write("a", at::zeros({2}));
    EXPECT_EQ(files_in_directory(), 2u);
    EXPECT_THROW(writer.finish(), ContractError);  // b is missing
  }
  EXPECT_EQ(file_bytes(path()), before);
  EXPECT_EQ(files_in_directory(), 1u);
}

TEST_F(WriterTest, WhatDoesNotFitTheDeclarationIsRefused) {
  const std::vector<TensorDeclaration> declared{{"a", at::kFloat, {2}}};
  SafetensorsWriter writer(path(), declared);
  EXPECT_THROW(writer.write("b", at::ones({2})), ContractError);
  EXPECT_THROW(writer.write("a", at::ones({3})), ContractError);
  EXPECT_THROW(writer.write("a", at::ones({2}, at::kDouble)), ContractError);
  EXPECT_THROW(writer.write("a", at::Tensor()), ContractError);
  EXPECT_THROW(writer.write("a", at::empty({2}, at::TensorOptions().device(at::kMeta))),
               ContractError);
  writer.write("a", at::ones({2}));
  EXPECT_THROW(writer.write("a", at::ones({2})), ContractError);
  writer.finish();
}

TEST_F(WriterTest, ImpossibleDeclarationsLeaveNothingBehind) {
  const at::Tensor one = at::ones({1});
  const auto write = [&](const Named& tensors) { write_safetensors(path(), tensors); };
  EXPECT_THROW(write({{"a", one}, {"a", one}}), ContractError);
  EXPECT_THROW(write({{"__metadata__", one}}), ContractError);
  EXPECT_THROW(write({{"a", one.to(at::kComplexDouble)}}), ContractError);
  EXPECT_NE(input_error([&] { write({{"\xff", one}}); }).find("UTF-8"), std::string::npos);
  EXPECT_EQ(files_in_directory(), 0u);
  const auto nowhere = directory() / "absent" / "w.safetensors";
  const std::string message = input_error([&] { write_safetensors(nowhere, Named{{"a", one}}); });
  EXPECT_TRUE(message.starts_with(nowhere.string())) << message;
}

}  // namespace
}  // namespace shardproof
