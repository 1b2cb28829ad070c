// What is predicted is what is sent: every record of every rank, exactly.
#include "analysis/traffic.h"

#include <gtest/gtest.h>

#include "analysis/testing.h"
#include "nn/linear.h"

namespace shardproof {
namespace {

constexpr int64_t kLength = 7;

// Rows of one data rank: not the same on each.
int64_t rows_of(int64_t data_rank) { return 1 + data_rank % 2; }

std::string line(const Record& r) {
  return fmt::format("{} over {} ({}) in {} of {} \"{}\": {} elements, {} bytes, {}", r.operation,
                     r.axis, r.ranks, r.phase, r.module, r.value, r.elements, r.bytes,
                     at::toString(r.dtype));
}

// "" where the two hold the same records, else the first few that only one of them has.
std::string difference(const std::vector<Record>& predicted, const std::vector<Record>& recorded) {
  std::map<std::string, int> counts;
  for (const Record& record : predicted) ++counts[line(record)];
  for (const Record& record : recorded) --counts[line(record)];
  std::string text;
  int shown = 0;
  for (const auto& [what, count] : counts) {
    if (count == 0 || ++shown > 6) continue;
    text += fmt::format("\n  {} x {}: {}", std::abs(count),
                        count > 0 ? "predicted only" : "recorded only", what);
  }
  return text;
}

struct Case {
  std::string layout;
  bool sequence_parallel = false;
  std::string head = "";  // another style of lm_head
  std::string experts = "auto";
};

DistributedConfig config_of(const Case& c) {
  DistributedConfig config = config_from_layout(c.layout);
  config.enable_sequence_parallel = c.sequence_parallel;
  config.ep_implementation = c.experts;
  if (!c.head.empty()) config.tp_plan = Plan{{"lm_head", c.head}};
  return config;
}

// `rows`: of the batch; 0: those that the rank has.
Traffic prediction(const std::string& directory, const DistributedConfig& config, int64_t rank,
                   at::ScalarType dtype, const std::map<std::string, int64_t>& arriving = {},
                   int64_t rows = 0) {
  const FamilyRegistry families = shipped_families();
  const LoadedModel loaded = build_from_directory(families, directory);
  const MeshShape mesh = config.mesh();
  Module& model = *loaded.causal_lm.model;
  const ResolvedPlan plan = resolve(model, mesh, config, loaded.family->plans);
  const std::vector<std::string> data_axes = {"dp_replicate", "fsdp"};
  const int64_t data_rank = mesh.coordinate(rank, data_axes);
  return traffic_of(model, plan, {rows > 0 ? rows : rows_of(data_rank), kLength}, rank,
                    {.dtype = dtype, .train_step = true, .arriving = arriving});
}

// The rows that reached the experts of a rank, by module: what it sent back.
std::map<std::string, int64_t> arrived(const std::string& directory,
                                       const std::vector<Record>& records) {
  const LoadedModel loaded = build_from_directory(shipped_families(), directory);
  int64_t hidden = 0;
  for (const ParamPtr& parameter : loaded.causal_lm.model->all_parameters())
    if (parameter->name() == "model.embed_tokens.weight") hidden = parameter->shape()[1];
  std::map<std::string, int64_t> rows;
  for (const Record& record : records)
    if (record.value == "results" && record.phase == "forward")
      rows[record.module] = record.elements / hidden;
  return rows;
}

// Compares on every rank; the number of records of rank 0.
size_t check(const std::string& directory, const Case& c, at::ScalarType dtype = at::kDouble) {
  const DistributedConfig config = config_of(c);
  const auto ranks = static_cast<int>(config.mesh().world_size());
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (int rank = 0; rank < ranks; ++rank) recorders.push_back(std::make_shared<Recorder>());
  run_ranks(ranks, [&](CommPtr world) {
    const int rank = world->rank();
    const FamilyRegistry families = shipped_families();
    testing::Placed placed(record(world, recorders[rank]),
                           build_from_directory(families, directory), config, dtype);
    const Batch batch = placed.batch(rows_of(placed.data->rank()), kLength);
    recorders[rank]->clear();
    placed.step(batch);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Record> recorded = recorders[rank]->records();
    const auto arriving = arrived(directory, recorded);
    const Traffic predicted = prediction(directory, config, rank, dtype, arriving);
    EXPECT_TRUE(predicted.unknown.empty()) << predicted.unknown.front();
    EXPECT_TRUE(predicted.routed.empty());
    // Data ranks have one or two rows.
    const Traffic one_row = prediction(directory, config, rank, dtype, {}, 1);
    const Traffic two_rows = prediction(directory, config, rank, dtype, {}, 2);
    EXPECT_EQ(one_row.routed.size(), arriving.size());
    for (size_t i = 0; i < one_row.routed.size(); ++i) {
      const RoutedRows& few = one_row.routed[i];
      EXPECT_LE(few.least, arriving.at(few.module));
      EXPECT_GE(two_rows.routed.at(i).most, arriving.at(few.module));
      EXPECT_TRUE(few.least <= few.balanced && few.balanced <= few.most);
    }
    const std::string different = difference(predicted.records, recorded);
    EXPECT_EQ(different, "") << directory << ", " << c.layout
                             << (c.sequence_parallel ? ", sequence parallel" : "") << ", rank "
                             << rank;
  }
  return recorders[0]->records().size();
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).filename();
}

class EveryFamilyTraffic : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamilyTraffic, SendsWhatIsPredicted) {
  for (const char* layout : {"fsdp=2", "dp_replicate=2", "dp_replicate=2,fsdp=2", "fsdp=8"})
    EXPECT_GT(check(GetParam(), {layout}), 3u);
}

TEST_P(EveryFamilyTraffic, SendsWhatIsPredictedWithTensorParallel) {
  for (const char* layout : {"tp=2", "tp=4", "fsdp=2,tp=2", "dp_replicate=2,fsdp=2,tp=2", "tp=8"}) {
    for (const bool sequence_parallel : {false, true})
      EXPECT_GT(check(GetParam(), {layout, sequence_parallel}), 3u);
  }
}

// A dense family has no experts: there the layouts are those without ep.
TEST_P(EveryFamilyTraffic, SendsWhatIsPredictedWithExpertParallel) {
  for (const bool sequence_parallel : {false, true}) {
    for (const char* implementation : {"all_reduce", "all_to_all"})
      for (const char* layout : {"tp=2,ep=2", "fsdp=2,tp=2,ep=2"})
        EXPECT_GT(check(GetParam(), {layout, sequence_parallel, "", implementation}), 3u);
    for (const char* layout : {"fsdp=2,ep=2", "fsdp=4,ep=2", "fsdp=2,tp=2,ep=4"})
      EXPECT_GT(check(GetParam(), {layout, sequence_parallel, "", "all_to_all"}), 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryFamilyTraffic,
                         ::testing::ValuesIn(testing::fixture_directories()), name_of);

TEST(Traffic, TheComparisonSeesARecordThatIsMissingAndOneThatIsOff) {
  const Record a{"all_reduce", "tp", "m", "v", "forward", at::kFloat, 4, 16, 2};
  Record b = a;
  b.elements = 5;
  EXPECT_EQ(difference({a, b}, {b, a}), "");
  EXPECT_NE(difference({a}, {a, a}), "");
  EXPECT_NE(difference({a}, {b}), "");
}

TEST(Traffic, SumsByAxisAndOperation) {
  const std::vector<Record> records = {
      {"all_gather", "fsdp", "a", "parameters", "forward", at::kFloat, 10, 40, 4},
      {"all_reduce", "tp", "a", "output", "forward", at::kFloat, 100, 400, 2},
      {"all_gather", "fsdp", "b", "parameters", "forward", at::kFloat, 30, 120, 4}};
  EXPECT_EQ(sent_bytes(records[0]), 3 * 40);
  EXPECT_EQ(sent_bytes(records[1]), 400);  // 2 * (2 - 1) / 2
  EXPECT_EQ(total_sent(records), 120 + 400 + 360);
  const auto sums = sums_of(records);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].axis, "fsdp");
  EXPECT_EQ(sums[0].calls, 2);
  EXPECT_EQ(sums[0].elements, 40);
  EXPECT_EQ(sums[0].bytes, 160);
  EXPECT_EQ(sums[0].sent, 480);
  EXPECT_EQ(sums[1].ranks, 2);
}

TEST(Traffic, OfAValueWhoseWidthNobodyStatesSaysSo) {
  class Opaque final : public Module {  // without links
   public:
    Opaque() : Module("Opaque", {.inputs = {{"input"}}}) {
      linear_ = add_child("linear", std::make_shared<Linear>(LinearOptions{.in = 4, .out = 4}));
      finish();
    }

   protected:
    NamedTensors forward(const NamedTensors& inputs) override {
      return {{"output", (*linear_)(inputs.at("input"))}};
    }

   private:
    std::shared_ptr<Linear> linear_;
  } model;
  DistributedConfig config = config_from_layout("tp=2");
  config.tp_plan = Plan{{"linear", "rowwise_split_input"}};
  ResolvedPlan plan = resolve_with_findings(model, config.mesh(), config, {});
  EXPECT_EQ(traffic_of(model, plan, {1, 3}, 0).records.size(), 2u);  // forward, backward
  plan.modules.front().path = "";
  plan.modules.front().inputs.clear();
  const Traffic traffic = traffic_of(model, plan, {1, 3}, 0);
  EXPECT_TRUE(traffic.records.empty());
  EXPECT_EQ(traffic.unknown, (std::vector<std::string>{" \"output\""}));
}

TEST(Traffic, OfLogitsThatStayCutTheLossSendsAFewNumbersAToken) {
  for (const std::string& directory : testing::fixture_directories()) {
    if (!directory.ends_with("llama_untied_9_3")) continue;
    for (const bool sequence_parallel : {false, true})
      EXPECT_GT(check(directory, {"fsdp=2,tp=2", sequence_parallel, "colwise_loss_parallel"}), 3u);
    EXPECT_GT(check(directory, {"tp=2", false, "colwise_loss_parallel"}, at::kFloat), 3u);
  }
}

}  // namespace
}  // namespace shardproof
