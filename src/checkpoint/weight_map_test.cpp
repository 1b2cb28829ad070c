#include "checkpoint/weight_map.h"

#include "checkpoint/testing.h"
#include "io/mxfp4.h"

namespace shardproof {
namespace {

using testing::Bag;
using testing::NamedList;
using testing::values;
using weight::concatenate;
using weight::mxfp4;
using weight::stack;
using weight::tensor;
using weight::transpose;

// As GPT-OSS comes: MXFP4 [experts, out, in], or [experts, in, out] as it is.
const WeightMap kPacked = {
    .rules = {{"layers.*.experts.down",
               {transpose(mxfp4("layers.*.experts.down")), tensor("layers.*.experts.down")}}},
    .ignored = {"layers.9.**", "layers.*.inv_freq"}};

// As Mixtral and Qwen3-MoE come: one tensor an expert, or stacked.
const WeightMap kExperts = {
    .rules = {{"layers.*.mlp.experts.gate_up",
               {tensor("layers.*.mlp.experts.gate_up"),
                concatenate(1, {stack(tensor("layers.*.moe.experts.*.w1")),
                                stack(tensor("layers.*.moe.experts.*.w3"))})}},
              {"layers.*.mlp.gate.weight", {tensor("layers.*.moe.gate.weight")}}},
    .ignored = {}};

class WeightMapTest : public testing::FileTest {
 protected:
  // Loads all of a parameter, in double.
  at::Tensor loaded(Module& module, const NamedList& tensors, const WeightMap& map) {
    const CheckpointFiles files = write(tensors);
    for (const ParamPtr& parameter : module.all_parameters())
      if (!parameter->placed()) parameter->place_whole(at::kDouble);
    load_parameters(module, files, map);
    return module.all_parameters()[0]->kept();
  }
};

TEST_F(WeightMapTest, MixtralAndStackedFormsGiveTheSame) {
  Bag module({{"layers.3.mlp.experts.gate_up", {2, 6, 4}}, {"layers.3.mlp.gate.weight", {2, 4}}});
  const at::Tensor whole = values({2, 6, 4}, 1);
  const at::Tensor router = values({2, 4}, 2);
  NamedList apart = {{"layers.3.moe.gate.weight", router}};
  for (int64_t e = 0; e < 2; ++e) {
    const std::string expert = fmt::format("layers.3.moe.experts.{}.", e);
    apart.emplace_back(expert + "w1", whole[e].narrow(0, 0, 3));
    apart.emplace_back(expert + "w3", whole[e].narrow(0, 3, 3));
  }

  EXPECT_TRUE(at::equal(loaded(module, apart, kExperts), whole));
  EXPECT_TRUE(at::equal(module.all_parameters()[1]->kept(), router));
  EXPECT_TRUE(at::equal(
      loaded(module,
             {{"layers.3.mlp.experts.gate_up", whole * 2}, {"layers.3.moe.gate.weight", router}},
             kExperts),
      whole * 2));
}

TEST_F(WeightMapTest, PackedAndPlainFormsAndWhatIsIgnored) {
  std::mt19937 random(1);
  Bag module({{"layers.0.experts.down", {2, 32, 5}}});
  NamedList packed = testing::mxfp4_pair("layers.0.experts.down", {2, 5, 32}, random);
  const at::Tensor want =
      decode_mxfp4(packed[0].second, packed[1].second, at::kDouble).transpose(1, 2);
  packed.emplace_back("layers.9.eh_proj.weight", at::ones({3}));
  packed.emplace_back("layers.12.inv_freq", at::ones({3}));

  EXPECT_TRUE(at::equal(loaded(module, packed, kPacked), want));
  EXPECT_TRUE(at::equal(loaded(module, {{"layers.0.experts.down", want}}, kPacked), want));
}

TEST_F(WeightMapTest, AFormThatIsThereInPartNamesWhatIsMissing) {
  std::mt19937 random(1);
  Bag module({{"layers.0.experts.down", {2, 32, 5}}});
  NamedList packed = testing::mxfp4_pair("layers.0.experts.down", {2, 5, 32}, random);
  packed.pop_back();
  std::string message = refusal(module, packed, kPacked);
  EXPECT_CONTAINS(message,
                  "'layers.0.experts.down_blocks', but not 'layers.0.experts.down_scales'");

  Bag experts({{"layers.0.mlp.experts.gate_up", {7, 6, 4}}});
  NamedList some;
  for (int64_t e = 0; e < 6; ++e)
    some.emplace_back(fmt::format("layers.0.moe.experts.{}.w1", e), values({3, 4}, e));
  message = refusal(experts, some, kExperts);
  EXPECT_CONTAINS(message, "'layers.0.moe.experts.6.w1', 'layers.0.moe.experts.0.w3', ");
  EXPECT_CONTAINS(message, " and 4 more");

  message = refusal(experts, {{"other", values({1}, 1)}}, kExperts);
  EXPECT_CONTAINS(message,
                  "no tensor 'layers.0.mlp.experts.gate_up' or 'layers.0.moe.experts.0.w1', of "
                  "shape [7, 6, 4]");
}

TEST_F(WeightMapTest, OtherShapesDtypesAndExpertCountsAreNamed) {
  std::mt19937 random(1);
  Bag module({{"layers.0.experts.down", {2, 32, 5}}});
  const NamedList packed = testing::mxfp4_pair("layers.0.experts.down", {2, 5, 32}, random);
  const at::Tensor blocks = packed[0].second, scales = packed[1].second;
  const std::string name = "layers.0.experts.down";
  const auto refused = [&](const at::Tensor& b, const at::Tensor& s) {
    return refusal(module, {{name + "_blocks", b}, {name + "_scales", s}}, kPacked);
  };
  EXPECT_CONTAINS(refused(blocks.to(at::kBFloat16), scales),
                  "'layers.0.experts.down_blocks' is of BF16, MXFP4 is stored as U8");
  EXPECT_CONTAINS(refused(blocks, scales.to(at::kFloat)),
                  "'layers.0.experts.down_scales' is of F32, MXFP4 is stored as U8");
  EXPECT_CONTAINS(refused(at::cat({blocks, blocks}), at::cat({scales, scales})),
                  "down_blocks' has shape [4, 5, 1, 16], the model's has [2, 5, 1, 16]");
  EXPECT_CONTAINS(refused(blocks, at::cat({scales, scales}, 2)),
                  "down_scales' has shape [2, 5, 2], the model's has [2, 5, 1]");
  EXPECT_CONTAINS(refusal(module, {{name, scales}}, kPacked),
                  "'layers.0.experts.down' is of U8, where the model needs");
  Bag narrow({{"layers.0.experts.down", {2, 33, 5}}});
  EXPECT_CONTAINS(refusal(narrow, packed, kPacked),
                  "down_blocks' holds blocks of 32 values, the model's last dim there has 33");

  Bag experts({{"layers.0.mlp.experts.gate_up", {1, 6, 4}}});
  const NamedList apart = {{"layers.0.moe.experts.0.w1", values({3, 4}, 1)},
                           {"layers.0.moe.experts.0.w3", values({3, 4}, 2)}};
  NamedList more = apart;
  more.emplace_back("layers.0.moe.experts.1.w1", values({3, 4}, 1));
  EXPECT_CONTAINS(refusal(experts, more, kExperts),
                  "'layers.0.moe.experts.1.w1' belongs to no parameter");
  NamedList wide = apart;
  wide[1].second = values({4, 4}, 2);
  EXPECT_CONTAINS(refusal(experts, wide, kExperts), "have 7 positions of dim 1, the model's has 6");
  wide[1].second = values({3, 5}, 2);
  EXPECT_CONTAINS(refusal(experts, wide, kExperts),
                  "'layers.0.moe.experts.0.w3' has shape [3, 5], the model's has [?, 4]");
  // Both forms at once: the second one's tensors are nobody's.
  NamedList both = apart;
  both.emplace_back("layers.0.mlp.experts.gate_up", values({1, 6, 4}, 1));
  EXPECT_CONTAINS(refusal(experts, both, kExperts),
                  "'layers.0.moe.experts.0.w1' (and 1 more) belongs to no parameter");
}

TEST_F(WeightMapTest, SplitsOfOneTensorAndTheirSizes) {
  const auto part = [](int64_t index) {
    return weight::split(0, {3, 2, 2}, index, tensor("layers.*.qkv"));
  };
  const WeightMap map = {
      .rules = {{"layers.*.q", {part(0)}}, {"layers.*.k", {part(1)}}, {"layers.*.v", {part(2)}}},
      .ignored = {}};
  Bag module({{"layers.1.q", {3, 4}}, {"layers.1.k", {2, 4}}, {"layers.1.v", {2, 4}}});
  const at::Tensor whole = values({7, 4}, 5);

  EXPECT_TRUE(at::equal(loaded(module, {{"layers.1.qkv", whole}}, map), whole.narrow(0, 0, 3)));
  EXPECT_TRUE(at::equal(module.all_parameters()[2]->kept(), whole.narrow(0, 5, 2)));
  EXPECT_CONTAINS(refusal(module, {{"layers.1.qkv", values({8, 4}, 1)}}, map),
                  "'layers.1.qkv' has shape [8, 4], the model's has [7, 4]");
}

TEST_F(WeightMapTest, RulesThatCannotBeAreContractErrors) {
  Bag module({{"layers.0.w", {3, 4}}});
  const CheckpointFiles files = write({{"layers.0.w", values({3, 4}, 1)}});
  for (const WeightSource& source :
       {tensor("layers.w"), tensor("layers.*.*.w"), stack(tensor("layers.*.w")),
        weight::interleave(0, {tensor("layers.*.w"), tensor("layers.*.v")}),
        concatenate(2, {tensor("layers.*.w")}), weight::split(0, {1, 2}, 0, tensor("layers.*.w"))})
    EXPECT_THROW(
        check_parameters(module, files, {.rules = {{"layers.*.w", {source}}}, .ignored = {}}),
        ContractError);
}

}  // namespace
}  // namespace shardproof
