#include "harness/training_run.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include "analysis/check_plan.h"
#include "base/check.h"
#include "checkpoint/load.h"
#include "harness/backward_order.h"
#include "harness/no_optimizer.h"
#include "harness/output_watcher.h"
#include "train/initialize.h"
#include "train/trainer.h"

namespace shardproof {
namespace {

// Of biases and norms that start from a seed: zeros and ones would hide what is done to them twice.
constexpr double kInitialSpread = 0.1;

Value scalar_value(Kind kind, const char* name, int64_t step, double number, bool owned) {
  return {{kind, name, step},
          at::scalar_tensor(number, at::kDouble),
          [owned](const std::vector<int64_t>&) {
            return Part{{}, owned ? std::optional(Region{}) : std::nullopt};
          }};
}

// A tensor that lies as the parameter is kept.
Value kept_value(ValueKey key, const Parameter& parameter, const at::Tensor& local) {
  return {std::move(key), local.defined() ? local.detach() : local,
          [part = Part{parameter.kept_region(), parameter.owned}](const std::vector<int64_t>&) {
            return part;
          }};
}

void show_state(const std::vector<ParamPtr>& params, const AdamW* adamw, int64_t step,
                const ValueSink& sink) {
  for (const ParamPtr& parameter : params)
    sink(kept_value({Kind::kParameter, parameter->name(), step}, *parameter, parameter->kept()));
  if (adamw == nullptr) return;
  for (const ParamPtr& parameter : params) {
    if (!parameter->requires_grad) continue;
    const AdamW::Moments& moments = adamw->moments(parameter->name());
    sink(kept_value({Kind::kMoment, parameter->name() + ".exp_avg", step}, *parameter,
                    moments.exp_avg));
    sink(kept_value({Kind::kMoment, parameter->name() + ".exp_avg_sq", step}, *parameter,
                    moments.exp_avg_sq));
  }
}

void round_weights(const std::vector<ParamPtr>& params, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (const ParamPtr& parameter : params) parameter->kept().copy_(parameter->kept().to(type));
}

// Where all data ranks have as many valid tokens, a loss that is normalised by the wrong count
// looks right. Collective over the data ranks.
void check_counts_differ(Communicator& data, int64_t count) {
  if (data.size() == 1) return;
  const at::Tensor most = at::tensor({count, -count});
  data.all_reduce(most, most, ReduceOp::kMax, {"", "valid tokens", "setup"}).wait();
  SP_VALIDATE(
      most[0].item<int64_t>() != -most[1].item<int64_t>(),
      "each of the {} data ranks has {} valid tokens, so that a wrong normalisation would not "
      "be seen: give [data] another seed or other samples",
      data.size(), count);
}

// Idle ranks waste a machine and are right all the same: `plan` calls them an error, a run does
// not.
void check_plans(Module& model, const DistributedConfig& config, const ModelPlans& plans) {
  const bool written = config.tp_plan || config.sp_plan || config.fsdp_plan || config.ep_plan;
  Findings findings = written ? check_plan(model, config, plans).findings
                              : resolve_with_findings(model, config.mesh(), config, plans).findings;
  std::erase_if(findings, [](const Finding& finding) { return finding.check == "cut"; });
  throw_errors(findings);
}

}  // namespace

PlacedModel place_model(const CommPtr& world, const ModelSource& source, at::ScalarType dtype,
                        const DistributedConfig& config, const RunSeams& seams) {
  LoadedModel loaded = build_from_directory(source.families, source.directory.string());
  const CommPtr base = seams.world ? seams.world(world) : world;
  PlacedModel placed{loaded.causal_lm, loaded.family->name, nullptr, nullptr, nullptr};
  placed.mesh = std::make_shared<DeviceMesh>(base, config.mesh());
  check_plans(*placed.causal_lm.model, config, loaded.family->plans);
  placed.plan = parallelize(*placed.causal_lm.model, placed.mesh, config, loaded.family->plans,
                            {.dtype = dtype, .edit = seams.plan});
  placed.logits = std::make_shared<CausalLogits>(*placed.plan, placed.mesh);
  Module& model = *placed.causal_lm.model;
  if (source.init_seed) {
    initialize_parameters(
        model, *source.init_seed,
        {.standard_deviation = placed.causal_lm.initializer_range, .spread = kInitialSpread});
  } else {
    load_parameters(model, CheckpointFiles(source.directory), loaded.family->weights);
  }
  return placed;
}

void check_model(const ModelSource& source) {
  const LoadedModel loaded = build_from_directory(source.families, source.directory.string());
  if (!source.init_seed)
    check_parameters(*loaded.causal_lm.model, CheckpointFiles(source.directory),
                     loaded.family->weights);
}

void check_plans(const ModelSource& source, const DistributedConfig& config) {
  const LoadedModel loaded = build_from_directory(source.families, source.directory.string());
  check_plans(*loaded.causal_lm.model, config, loaded.family->plans);
}

RunInfo run_training(const CommPtr& world, const TrainingSpec& spec,
                     const DistributedConfig& config, const RunObserver& observer,
                     const RunSeams& seams) {
  PlacedModel placed = place_model(world, spec.model, spec.dtype, config, seams);
  Module& model = *placed.causal_lm.model;
  const std::vector<ParamPtr> params = model.all_parameters();
  if (spec.round_weights) round_weights(params, *spec.round_weights);
  if (seams.model) seams.model(placed);
  const auto wanted = [&](Kind kind) { return spec.kinds.empty() || spec.kinds.contains(kind); };
  const ValueSink filtered = [&](const Value& value) {
    if (wanted(value.key.kind)) observer.show(value);
  };

  const std::vector<std::string> data_axes = {"dp_replicate", "fsdp"};
  CommPtr data = placed.mesh->group(data_axes);
  const int64_t data_rank = data->rank();
  const int64_t data_size = data->size();
  const CommPtr data_ranks = data;
  if (seams.data) data = seams.data(data, placed.mesh->world());
  DataSpec data_spec = spec.data;
  if (data_spec.vocab == 0) data_spec.vocab = placed.causal_lm.vocab_size;
  const SampleRange rows = split_samples(data_spec.samples, data_size, data_rank);

  std::unique_ptr<Optimizer> optimizer;
  const AdamW* adamw = nullptr;
  if (spec.update) {
    auto made = std::make_unique<AdamW>(params, spec.adamw);
    adamw = made.get();
    optimizer = std::move(made);
  } else {
    SP_EXPECT(spec.steps == 1, "{} steps without an optimizer would all be the first one",
              spec.steps);
    optimizer = std::make_unique<NoOptimizer>(params);
  }

  RunInfo info{placed.family, static_cast<int64_t>(params.size()), {}};
  auto order = note_backward_order(params);
  OutputWatcher watcher(placed, spec.watch, {rows, data_spec.samples}, filtered);
  const bool first_rank = world->rank() == 0;
  for (int64_t step = 0; step < spec.steps; ++step) {
    StepOptions options{.max_norm = spec.max_norm, .after_backward = {}};
    if (step == 0 && wanted(Kind::kOutput)) watcher.start();
    if (step == 0) {
      options.after_backward = [&] {
        watcher.stop();
        info.backward_order = *order;
        order.reset();
        for (const ParamPtr& parameter : params) {
          if (!parameter->requires_grad) continue;  // frozen
          filtered(
              kept_value({Kind::kGradient, parameter->name(), 0}, *parameter, parameter->grad));
        }
        if (observer.settle) observer.settle();
      };
    }
    Batch batch = make_batch(data_spec, step, rows);
    if (step == 0) check_counts_differ(*data_ranks, count_valid(batch));
    if (seams.batch) batch = seams.batch(std::move(batch));
    const StepResult result = train_step(model, *optimizer, batch, placed.logits->loss(), *data,
                                         *placed.mesh->world(), options);
    filtered(scalar_value(Kind::kLoss, "loss", step, result.loss, first_rank));
    filtered(scalar_value(Kind::kNorm, "norm", step, result.grad_norm, first_rank));
  }
  show_state(params, adamw, spec.steps, filtered);
  return info;
}

}  // namespace shardproof
