// Every style against the unsharded model: output, loss and all gradients in float64, uneven and
// empty parts, with and without sequence parallel, also where tokens do not divide.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "base/test_errors.h"
#include "comm/threads/run_ranks.h"
#include "parallel/loss.h"
#include "parallel/parallelize.h"
#include "parallel/style.h"
#include "parallel/style_blocks_test.h"
#include "tensor/region_copy.h"

namespace shardproof {
namespace {

using namespace testing_blocks;

constexpr int64_t kBatch = 3;

struct StyleCase {
  std::string name;
  std::function<std::shared_ptr<Module>()> block;
  Plan rules;  // of the block
  std::string embed = "embedding_rowwise";
  std::string head = "colwise_gather_output";
  Plan sp = {};  // of the block, with sequence parallel
};

std::function<std::shared_ptr<Module>()> pair(Cut cut) {
  return [cut] { return std::make_shared<Pair>(cut); };
}
template <class Block>
std::shared_ptr<Module> make() {
  return std::make_shared<Block>();
}

const Cut kTwo{{{5}, {3}}};                  // packed, unequal
const Cut kThree{{{6, 2}, {3, 1}, {4, 4}}};  // units that do not divide, one that is alone

Plan moe_rules(const std::string& gate_up) {
  return {{"block.experts", "moe_tp_experts"},
          {"block.experts.gate_up_proj", gate_up},
          {"block.experts.gate_up_proj_bias", gate_up},
          {"block.experts.down_proj", "rowwise"},
          {"block.experts.down_proj_bias", "rowwise"}};
}

std::vector<StyleCase> cases() {
  const Plan pair_rules = {{"block.first", "colwise"}, {"block.second", "rowwise"}};
  return {
      {"colwise_rowwise", pair(Cut::plain(7)), pair_rules},
      {"ranks_that_own_nothing", pair(Cut::plain(2)), pair_rules},
      {"whole_units", pair(Cut::units(10, 4)), pair_rules},
      {"gather_and_split",
       pair(Cut::plain(7)),
       {{"block.first", "colwise_gather_output"}, {"block.second", "rowwise_split_input"}}},
      {"gathered_copies",
       [] { return std::make_shared<Pair>(Cut::units(6, 3, Spread::kCopies), Cut::plain(6)); },
       {{"block.first", "colwise_gather_output"}, {"block.second", "rowwise_split_input"}}},
      {"older_names",
       pair(Cut::plain(7)),
       {{"block.first", "colwise_rep"}, {"block.second", "rowwise_rep"}},
       "vocab",
       "colwise_allgather"},
      {"packed",
       pair(kTwo),
       {{"block.first", "packed_colwise"}, {"block.second", "packed_rowwise"}}},
      {"packed_units",
       pair(kThree),
       {{"block.first", "packed_colwise"}, {"block.second", "packed_rowwise"}}},
      {"packed_gathered",
       pair(kTwo),
       {{"block.first", "colwise_gather_output"}, {"block.second", "rowwise_split_input"}}},
      {"embedding_colwise", pair(Cut::plain(7)), pair_rules, "embedding_colwise"},
      {"replicate",
       pair(Cut::plain(7)),
       {{"block.first", "replicate"}, {"block.second", "replicate"}},
       "replicate",
       "replicate",
       {{"embed", "embedding_rowwise"},
        {"head", "colwise_gather_output"},
        {"block.first", "sequence_parallel"},
        {"block.second", "sequence_parallel"}}},
      {"norm_of_heads_and_bare_parameter",
       make<Heads>,
       {{"block.up", "colwise"},
        {"block.norm", "replicated_with_grad_allreduce"},
        {"block.down", "rowwise"},
        {"block.sinks", "local_params"}}},
      {"norm_of_heads_by_older_names",
       make<Heads>,
       {{"block.up", "colwise"},
        {"block.norm", "activation_seq_dim_2"},
        {"block.down", "rowwise_allreduce"},
        {"block.sinks", "local_rowwise"},
        {"block", "local_params"}}},
      {"latent",
       make<Latent>,
       {{"block.kv_a", "mla_kv_a_proj"}, {"block.kv_b", "colwise"}, {"block.o", "rowwise"}},
       "embedding_rowwise",
       "colwise_gather_output",
       {{"block.norm", "sequence_parallel"}}},
      {"loss_parallel", pair(Cut::plain(7)), pair_rules, "embedding_rowwise",
       "colwise_loss_parallel"},
      {"moe_tp",
       [] { return make_moe(false); },
       moe_rules("packed_colwise"),
       "embedding_rowwise",
       "colwise_gather_output",
       {{"block.gate", "sequence_parallel"}}},
      {"moe_tp_interleaved",
       [] { return make_moe(true); },
       moe_rules("colwise"),
       "embedding_rowwise",
       "colwise_gather_output",
       {{"block.gate", "sequence_parallel"}}},
      {"identity_expert",
       make<WithIdentityExpert>,
       {{"block.experts", "moe_experts"},
        {"block.experts.identity", "moe_identity_expert"},
        {"block.experts.up", "colwise"},
        {"block.experts.down", "rowwise"}}},
      {"norms_by_tokens",
       pair(Cut::plain(7)),
       {{"block.first", "colwise"},
        {"block.second", "rowwise"},
        {"norm", "sequence_parallel"},
        {"last", "sequence_parallel"}}},
  };
}

ModelPlans plans_of(const StyleCase& one) {
  ModelPlans plans;
  plans.tp = one.rules;
  plans.tp.push_back({"embed", one.embed});
  plans.tp.push_back({"head", one.head});
  plans.sp = {{"norm", "sequence_parallel"}, {"last", "sequence_parallel"}};
  plans.sp.insert(plans.sp.end(), one.sp.begin(), one.sp.end());
  plans.fsdp = {{"block", "free_full_weight"}};
  plans.ep = {{"block.experts", "ep_dispatch_experts"}};
  for (const char* name : {"gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"})
    plans.ep.push_back({fmt::format("block.experts.{}", name), "grouped_gemm"});
  return plans;
}

at::Tensor value_of(const Parameter& parameter) {
  double phase = 0;
  for (const char c : parameter.name()) phase = phase * 1.7 + c;
  int64_t count = 1;
  for (const int64_t size : parameter.shape()) count *= size;
  return at::sin(at::arange(count, at::kDouble) * 1.3 + phase).view(parameter.shape()) * 0.8 + 0.1;
}

void fill(Module& model) {
  const at::NoGradGuard no_grad;
  for (const ParamPtr& p : model.all_parameters())
    p->kept().copy_(take(value_of(*p), whole_region(p->shape()), p->kept_region()));
}

at::Tensor ids(int64_t length) {
  return at::arange(kBatch * length).mul(7).remainder(kVocab).view({kBatch, length});
}
at::Tensor labels(int64_t length) {
  at::Tensor result = ids(length).add(3).remainder(kVocab);
  result[0][0].fill_(kIgnoredLabel);
  return result;
}

struct Truth {
  double loss = 0;
  std::map<std::string, at::Tensor> grads;
};

Truth unsharded(const StyleCase& one, int64_t length) {
  Probe model(one.block());
  for (const ParamPtr& p : model.all_parameters()) p->place_whole(at::kDouble);
  fill(model);
  const at::Tensor logits = Module::only(model.call({}, {{"input_ids", ids(length)}}));
  const at::Tensor loss = cross_entropy_sum(logits, labels(length), {.label_smoothing = 0.1});
  loss.backward();
  Truth truth{loss.item<double>(), {}};
  for (const ParamPtr& p : model.all_parameters()) truth.grads[p->name()] = p->view().grad();
  return truth;
}

using Edit = std::function<void(ResolvedPlan&)>;

// The largest relative error of any rank's loss or gradient, and what it is of. Data ranks share
// the rows of the batch.
std::pair<double, std::string> worst_error(const StyleCase& one, const DistributedConfig& config,
                                           int64_t length, const Edit& edit = {}) {
  const Truth truth = unsharded(one, length);
  std::mutex mutex;
  std::pair<double, std::string> worst{0, "nothing"};
  const auto note = [&](double error, const std::string& name, int rank) {
    const std::lock_guard lock(mutex);
    if (!(error <= worst.first))
      worst = {std::isnan(error) ? INFINITY : error, fmt::format("{} on rank {}", name, rank)};
  };
  run_ranks(static_cast<int>(config.mesh().world_size()), [&](CommPtr world) {
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    Probe model(one.block());
    const auto plan =
        parallelize(model, mesh, config, plans_of(one), {.dtype = at::kDouble, .edit = edit});
    const CausalLogits logits(*plan, mesh);
    fill(model);
    const std::vector<std::string> data{"dp_replicate", "fsdp"};
    const Intervals mine = cut_intervals({}, kBatch, mesh->shape().size(data),
                                         mesh->shape().coordinate(world->rank(), data));
    const auto rows = [&](const at::Tensor& t) {
      return t.narrow(0, mine.at(0).begin, mine.at(0).size());
    };
    const at::Tensor out = Module::only(model.call({}, {{"input_ids", rows(ids(length))}}));
    const at::Tensor loss = logits.loss_sum(out, rows(labels(length)), {.label_smoothing = 0.1});
    loss.backward();
    const at::Tensor sum = loss.detach().clone();
    mesh->group(data)->all_reduce(sum, sum, ReduceOp::kSum, {}).wait();
    note(std::abs(sum.item<double>() / truth.loss - 1), "loss", world->rank());
    for (const ParamPtr& p : model.all_parameters()) {
      const at::Tensor& whole = truth.grads.at(p->name());
      EXPECT_EQ(p->grad.defined(), whole.defined()) << p->name();
      if (!whole.defined() || !p->grad.defined()) continue;
      const at::Tensor want = take(whole, whole_region(p->shape()), p->kept_region());
      note((p->grad - want).norm().item<double>() / whole.norm().item<double>(), p->name(),
           world->rank());
    }
  });
  return worst;
}

void expect_parity(const StyleCase& one, const DistributedConfig& config, int64_t length) {
  const auto [error, where] = worst_error(one, config, length);
  EXPECT_LT(error, 1e-12) << where << " of " << one.name << " " << config.layout()
                          << " sp=" << config.enable_sequence_parallel << " length " << length;
}

// Every sum over ranks of a gradient that the plan has, left out one at a time.
std::vector<std::pair<std::string, Edit>> dropped_sums(const ResolvedPlan& plan) {
  std::vector<std::pair<std::string, Edit>> edits;
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    if (!plan.parameters[i].edge.grad_inside.is_partial()) continue;
    edits.emplace_back(plan.parameters[i].name, [i](ResolvedPlan& edited) {
      edited.parameters[i].edge.grad_inside = edited.parameters[i].edge.grad_outside;
    });
  }
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    for (size_t k = 0; k < plan.modules[i].inputs.size(); ++k) {
      const Edge& edge = plan.modules[i].inputs[k].edge;
      if (!edge.grad_inside.is_partial() || !edge.grad_outside.is_replicate()) continue;
      edits.emplace_back(plan.modules[i].path, [i, k](ResolvedPlan& edited) {
        edited.modules[i].inputs[k].edge.grad_inside = replicate();
      });
    }
    for (size_t k = 0; k < plan.modules[i].outputs.size(); ++k) {
      const Edge& edge = plan.modules[i].outputs[k].edge;
      if (!edge.grad_outside.is_partial() || !edge.grad_inside.is_replicate()) continue;
      edits.emplace_back(plan.modules[i].path, [i, k](ResolvedPlan& edited) {
        edited.modules[i].outputs[k].edge.grad_outside = replicate();
      });
    }
  }
  return edits;
}

class Styles : public testing::TestWithParam<StyleCase> {};

TEST_P(Styles, EqualTheUnshardedModel) {
  for (const char* layout : {"tp=2", "tp=3", "tp=4", "fsdp=2,tp=2", "tp=6"})
    expect_parity(GetParam(), config_from_layout(layout), 5);
}

TEST_P(Styles, EqualTheUnshardedModelWithSequenceParallel) {
  for (const char* layout : {"tp=2", "tp=3", "tp=4", "fsdp=2,tp=2"}) {
    DistributedConfig config = config_from_layout(layout);
    config.enable_sequence_parallel = true;
    for (const int64_t length : {5, 2, 1}) expect_parity(GetParam(), config, length);
  }
}

// The proof can fail: whichever sum is missing, it shows.
TEST_P(Styles, AMissingSumShows) {
  for (const bool sequence_parallel : {false, true}) {
    DistributedConfig config = config_from_layout("tp=2");
    config.enable_sequence_parallel = sequence_parallel;
    Probe model(GetParam().block());
    const ResolvedPlan plan = resolve(model, config.mesh(), config, plans_of(GetParam()));
    for (const auto& [what, edit] : dropped_sums(plan)) {
      const auto [error, where] = worst_error(GetParam(), config, 5, edit);
      EXPECT_GT(error, 1e-3) << "without the sum of the gradient of " << what << " in "
                             << GetParam().name << " sp=" << sequence_parallel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Styles, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Experts on ranks of their own: five of them over two to eight, some ranks without one, some
// without tokens; over the ranks of tp, over data ranks, over both.
TEST(StyleExpertParallel, EqualsTheUnshardedModel) {
  const StyleCase one{"moe",
                      [] { return make_moe(false); },
                      moe_rules("packed_colwise"),
                      "embedding_rowwise",
                      "colwise_gather_output",
                      {{"block.gate", "sequence_parallel"}}};
  const auto check = [&](const char* layout, const char* implementation, bool sp, int64_t length) {
    DistributedConfig config = config_from_layout(layout);
    config.ep_implementation = implementation;
    config.enable_sequence_parallel = sp;
    SCOPED_TRACE(implementation);
    expect_parity(one, config, length);
  };
  for (const int64_t length : {5, 1}) {
    for (const bool sp : {false, true}) {
      for (const char* layout : {"tp=2,ep=2", "tp=3,ep=3", "tp=8,ep=8", "fsdp=2,tp=2,ep=2"}) {
        check(layout, "all_reduce", sp, length);
        check(layout, "all_to_all", sp, length);
      }
      check("fsdp=2,tp=2,ep=4", "all_to_all", sp, length);
    }
    for (const char* layout :
         {"fsdp=2,ep=2", "fsdp=3,ep=3", "dp_replicate=3,fsdp=1", "fsdp=2,tp=1,ep=2"})
      check(layout, "all_to_all", false, length);
  }
}

// On every rank alike, before anything moves; whether a style converts the input or takes it as it
// is.
TEST(Styles, AnInputThatIsMissingIsNamedWithModuleAndStyle) {
  run_ranks(2, [](CommPtr world) {
    const DistributedConfig config = config_from_layout("tp=2");
    const StyleCase one = cases().front();
    const auto mesh = std::make_shared<DeviceMesh>(world, config.mesh());
    Probe model(one.block());
    parallelize(model, mesh, config, plans_of(one), {.dtype = at::kDouble});
    for (const auto& [path, style] :
         {std::pair{"block.first", "colwise"}, {"block.second", "rowwise"}}) {
      const std::vector<Module*> modules = model.modules();
      const auto at = std::find_if(modules.begin(), modules.end(),
                                   [&](Module* module) { return module->path() == path; });
      EXPECT_EQ(error_of([&] { (*at)->call({}); }),
                fmt::format("{}: style {} needs the input \"input\", which the call did not give",
                            path, style));
    }
  });
}

// all_reduce sums the outputs of a block on bare parameters; the block passes no gradient on.
TEST(StyleAllReduce, SumsAddends) {
  const StyleCase one{
      "all_reduce",
      make<Bare>,
      {{"block", "all_reduce"}, {"block.up", "colwise"}, {"block.down", "rowwise"}}};
  for (const char* layout : {"tp=2", "tp=3", "tp=6"})
    expect_parity(one, config_from_layout(layout), 5);
}

TEST(StyleRegistry, EveryShippedStyleIsTestedAbove) {
  // Those that have tests of their own.
  std::set<std::string> used = {"all_reduce", "grouped_gemm", "ep_dispatch_experts/all_reduce",
                                "ep_dispatch_experts/all_to_all"};
  for (const StyleCase& one : cases()) {
    for (const auto& plan : {plans_of(one).tp, plans_of(one).sp})
      for (const PlanRule& rule : plan) used.insert(shipped_styles().find(rule.style)->name);
  }
  for (const std::string& name : shipped_styles().names()) EXPECT_TRUE(used.contains(name)) << name;
}

}  // namespace
}  // namespace shardproof
