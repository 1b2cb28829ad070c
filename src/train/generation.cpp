#include "train/generation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "nn/kv_cache.h"

namespace shardproof {
namespace {

constexpr int64_t kNoToken = -1;

struct Padded {
  at::Tensor ids, mask;  // int64 [batch, longest]
};

Padded pad_in_front(const std::vector<std::vector<int64_t>>& prompts, int64_t pad_id) {
  SP_VALIDATE(!prompts.empty(), "there is no prompt to continue");
  size_t longest = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    SP_VALIDATE(!prompts[i].empty(), "prompt {} has no tokens; one at least is needed", i);
    longest = std::max(longest, prompts[i].size());
  }
  const auto batch = static_cast<int64_t>(prompts.size());
  const auto length = static_cast<int64_t>(longest);
  Padded padded{at::full({batch, length}, pad_id, at::kLong),
                at::zeros({batch, length}, at::kLong)};
  for (int64_t i = 0; i < batch; ++i) {
    const auto count = static_cast<int64_t>(prompts[i].size());
    padded.ids[i].narrow(0, length - count, count).copy_(at::tensor(prompts[i], at::kLong));
    padded.mask[i].narrow(0, length - count, count).fill_(1);
  }
  return padded;
}

// Minus infinity is a token that a model excludes; it may not exclude all.
bool can_choose_from(std::span<const double> logits) {
  return std::none_of(logits.begin(), logits.end(), [](double x) { return std::isnan(x); }) &&
         std::isfinite(*std::max_element(logits.begin(), logits.end()));
}

// Caches in all modules that can hold one, until the end of the scope.
class Caches {
 public:
  Caches(Module& model, int64_t batch, int64_t capacity) {
    for (Module* module : model.modules()) {
      auto* holder = dynamic_cast<CacheHolder*>(module);
      if (holder == nullptr) continue;
      auto cache = holder->make_cache(batch, capacity);
      bytes_ += cache->bytes();
      holder->set_cache(std::move(cache));
      holders_.push_back(holder);
    }
    SP_EXPECT(!holders_.empty(), "no module of {} can hold a cache: generate without one",
              model.label());
  }
  ~Caches() {
    for (CacheHolder* holder : holders_) holder->set_cache(nullptr);
  }
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  int64_t bytes() const { return bytes_; }

 private:
  std::vector<CacheHolder*> holders_;
  int64_t bytes_ = 0;
};

class Generation {
 public:
  Generation(Module& model, const GenerateOptions& options, Communicator& world, int64_t batch)
      : model_(model), options_(options), world_(world) {
    result_.tokens.resize(batch);
    result_.margins.resize(batch);
    result_.ended.resize(batch, false);
  }

  Generated run(Padded padded);

 private:
  int64_t batch() const { return static_cast<int64_t>(result_.tokens.size()); }
  // The logits of the last token, float64 [batch, vocab].
  at::Tensor last_logits(const at::Tensor& ids, const at::Tensor& mask) const;
  // Next tokens int64 [batch] and their margins float64 [batch], from rank 0.
  std::pair<at::Tensor, at::Tensor> choose(const at::Tensor& logits, int64_t step) const;
  bool record(const at::Tensor& tokens, const at::Tensor& margins);

  Module& model_;
  const GenerateOptions& options_;
  Communicator& world_;
  Generated result_;
};

at::Tensor Generation::last_logits(const at::Tensor& ids, const at::Tensor& mask) const {
  const at::Tensor logits =
      Module::only(model_.call({}, {{"input_ids", ids}, {"attention_mask", mask}}));
  at::Tensor last = logits.select(1, -1);
  if (options_.whole_logits) last = options_.whole_logits(last);
  return last.to(at::kDouble).contiguous();
}

std::pair<at::Tensor, at::Tensor> Generation::choose(const at::Tensor& logits, int64_t step) const {
  at::Tensor tokens = at::full({batch()}, options_.pad_id, at::kLong);
  at::Tensor margins = at::zeros({batch()}, at::kDouble);
  if (world_.rank() == 0) {
    const auto vocab = static_cast<size_t>(logits.size(1));
    for (int64_t i = 0; i < batch(); ++i) {
      if (result_.ended[i]) continue;
      const std::span row(logits.const_data_ptr<double>() + i * vocab, vocab);
      // Not thrown here, where only this rank would know of it.
      const bool usable = can_choose_from(row);
      tokens[i].fill_(usable ? choose_token(row, options_.sampling, step, i) : kNoToken);
      margins[i].fill_(usable ? top2_margin(row) : 0.0);
    }
  }
  world_.broadcast(tokens, 0, {"", "tokens", "generate"}).wait();
  world_.broadcast(margins, 0, {"", "margins", "generate"}).wait();
  return {tokens, margins};
}

// True where every sequence has come to its end.
bool Generation::record(const at::Tensor& tokens, const at::Tensor& margins) {
  for (int64_t i = 0; i < batch(); ++i) {
    if (result_.ended[i]) continue;
    const auto token = tokens[i].item<int64_t>();
    SP_EXPECT(token != kNoToken,
              "no token can be chosen from the logits of sequence {} at step {}: they hold NaN or "
              "infinity",
              i, result_.steps);
    result_.tokens[i].push_back(token);
    result_.margins[i].push_back(margins[i].item<double>());
    result_.ended[i] = std::find(options_.eos_ids.begin(), options_.eos_ids.end(), token) !=
                       options_.eos_ids.end();
  }
  ++result_.steps;
  return std::find(result_.ended.begin(), result_.ended.end(), false) == result_.ended.end();
}

Generated Generation::run(Padded padded) {
  auto [input, mask] = std::move(padded);
  std::optional<Caches> caches;
  if (options_.use_cache) {
    // The last token that is chosen goes into no forward pass.
    caches.emplace(model_, batch(), input.size(1) + options_.max_new_tokens - 1);
    result_.cache_bytes = caches->bytes();
  }
  while (true) {
    const auto [tokens, margins] = choose(last_logits(input, mask), result_.steps);
    const bool all_ended = record(tokens, margins);
    if (all_ended || result_.steps == options_.max_new_tokens) break;
    const at::Tensor column = tokens.unsqueeze(1);
    input = options_.use_cache ? column : at::cat({input, column}, 1);
    mask = at::cat({mask, at::ones_like(column)}, 1);
  }
  return std::move(result_);
}

}  // namespace

void GenerateOptions::validate() const {
  SP_VALIDATE(max_new_tokens > 0, "max_new_tokens {}: it must be 1 or more", max_new_tokens);
  sampling.validate();
}

Generated generate(Module& model, const std::vector<std::vector<int64_t>>& prompts,
                   const GenerateOptions& options, Communicator& world) {
  options.validate();
  Padded padded = pad_in_front(prompts, options.pad_id);
  at::NoGradGuard no_grad;
  return Generation(model, options, world, static_cast<int64_t>(prompts.size()))
      .run(std::move(padded));
}

}  // namespace shardproof
