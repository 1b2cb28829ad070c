#include "nn/latent_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/check.h"
#include "nn/head_map.h"
#include "nn/rotary.h"
#include "nn/scaled_attention.h"

namespace shardproof {
namespace {

// [batch, length, heads * dim] -> [batch, heads, length, dim]
at::Tensor by_head(const at::Tensor& x, int64_t heads, int64_t dim) {
  return x.reshape({x.size(0), x.size(1), heads, dim}).transpose(1, 2);
}

}  // namespace

LatentAttention::LatentAttention(LatentAttentionOptions options)
    : Module("LatentAttention",
             {.inputs = {{"hidden_states"}, {"cos"}, {"sin"}, {"mask", /*required=*/false}}}),
      options_(options),
      query_dim_(options.plain_dim + options.rope_dim),
      scale_(options.scale.value_or(1.0 / std::sqrt(static_cast<double>(query_dim_)))) {
  const int64_t heads = options_.heads;
  const auto heads_of = [&](int64_t in, int64_t dim) {
    return std::make_shared<Linear>(
        LinearOptions{.in = in, .out = heads * dim, .out_cut = Cut::units(heads * dim, dim)});
  };
  const auto norm = [&](int64_t width) { return std::make_shared<RmsNorm>(width, options_.eps); };
  if (options_.query_rank) {
    q_a_ = add_child("q_a_proj", std::make_shared<Linear>(LinearOptions{.in = options_.hidden,
                                                                        .out = *options_.query_rank,
                                                                        .bias = options_.bias}));
    q_norm_ = add_child("q_a_layernorm", norm(*options_.query_rank));
    q_b_ = add_child("q_b_proj", heads_of(*options_.query_rank, query_dim_));
  } else {
    q_ = add_child("q_proj", heads_of(options_.hidden, query_dim_));
  }
  kv_a_ =
      add_child("kv_a_proj_with_mqa",
                std::make_shared<SplitLinear>(SplitLinearOptions{.in = options_.hidden,
                                                                 .compressed = options_.key_rank,
                                                                 .rope = options_.rope_dim,
                                                                 .bias = options_.bias}));
  kv_norm_ = add_child("kv_a_layernorm", norm(options_.key_rank));
  kv_b_ =
      add_child("kv_b_proj", heads_of(options_.key_rank, options_.plain_dim + options_.value_dim));
  const int64_t values = heads * options_.value_dim;
  o_ = add_child("o_proj", std::make_shared<Linear>(
                               LinearOptions{.in = values,
                                             .out = options_.hidden,
                                             .bias = options_.bias,
                                             .in_cut = Cut::units(values, options_.value_dim)}));
}

std::vector<Link> LatentAttention::links() const {
  std::vector<Link> links;
  const auto flows = [&](LinkEnd from, LinkEnd to) { links.push_back({from, to}); };
  const char* query = q_ ? "q_proj" : "q_b_proj";
  if (q_) {
    flows({"", "hidden_states"}, {"q_proj", "input"});
  } else {
    flows({"", "hidden_states"}, {"q_a_proj", "input"});
    flows({"q_a_proj", "output"}, {"q_a_layernorm", "hidden_states"});
    flows({"q_a_layernorm", "output"}, {"q_b_proj", "input"});
  }
  flows({"", "hidden_states"}, {"kv_a_proj_with_mqa", "input"});
  flows({"kv_a_proj_with_mqa", "compressed"}, {"kv_a_layernorm", "hidden_states"});
  flows({"kv_a_layernorm", "output"}, {"kv_b_proj", "input"});
  // Heads of other widths: cut both or not at all.
  links.push_back({{query, "output"}, {"kv_b_proj", "output"}, true});
  links.push_back({{query, "output"}, {"o_proj", "input"}, true});
  links.push_back({.from = {"kv_a_proj_with_mqa", "rope"},
                   .to = {query, "output"},
                   .together = false,
                   .to_heads = true});
  flows({"o_proj", "output"}, {"", "output"});
  return links;
}

std::shared_ptr<KvCache> LatentAttention::make_cache(int64_t batch, int64_t capacity) const {
  const ParamPtr& weight = kv_b_->weight();
  SP_EXPECT(weight->placed(), "{}: a cache is made when parameters are placed", label());
  const int64_t width = options_.plain_dim + options_.value_dim;
  return std::make_shared<KvCache>(KvCache::Shape{.batch = batch,
                                                  .heads = total_size(weight->held().at(0)) / width,
                                                  .capacity = capacity,
                                                  .head_dim = query_dim_,
                                                  .value_dim = options_.value_dim},
                                   weight->view().scalar_type());
}

at::Tensor LatentAttention::project_query(const at::Tensor& x) {
  if (q_) return only(q_->call({}, {{"input", x}}));
  const at::Tensor compressed = (*q_norm_)(only(q_a_->call({}, {{"input", x}})));
  return only(q_b_->call({}, {{"input", compressed}}));
}

std::vector<int64_t> LatentAttention::heads_given(const Linear& projection,
                                                  const at::Tensor& output) const {
  const Parameter& weight = *projection.weight();
  try {
    return heads_of_output(output.size(-1), options_.heads, weight.shape()[0] / options_.heads,
                           weight.held().at(0));
  } catch (const ContractError& error) {
    throw ContractError(projection.label() + ": " + error.what());
  }
}

at::Tensor LatentAttention::turned(const at::Tensor& x, const NamedTensors& inputs) const {
  return rotate(options_.neighbours ? halves_from_neighbours(x) : x, inputs.at("cos"),
                inputs.at("sin"));
}

NamedTensors LatentAttention::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  SP_EXPECT(x.dim() == 3, "{}: hidden_states must be [batch, length, hidden], not {}", label(),
            fmt::join(x.sizes(), "x"));
  const at::Tensor queries = project_query(x);
  const NamedTensors latent = kv_a_->call({}, {{"input", x}});
  const at::Tensor expanded =
      only(kv_b_->call({}, {{"input", (*kv_norm_)(latent.at("compressed"))}}));
  const std::vector<int64_t> local = heads_given(q_ ? *q_ : *q_b_, queries);
  const std::vector<int64_t> key_heads = heads_given(*kv_b_, expanded);
  SP_EXPECT(local == key_heads, "{}: the query heads {} are local, the key/value heads {}", label(),
            local, key_heads);

  const auto heads = static_cast<int64_t>(local.size());
  const int64_t plain = options_.plain_dim;
  const at::Tensor query = by_head(queries, heads, query_dim_);
  const at::Tensor both = by_head(expanded, heads, plain + options_.value_dim);
  const at::Tensor shared = turned(latent.at("rope").unsqueeze(1), inputs);
  at::Tensor key = at::cat({both.narrow(-1, 0, plain), shared.expand({-1, heads, -1, -1})}, -1);
  at::Tensor value = both.narrow(-1, plain, options_.value_dim);
  if (cache_) {
    cache_->set_heads(heads);
    const KvCache::Held held = cache_->append(key, value);
    key = held.key;
    value = held.value;
  }
  const at::Tensor whole_query = at::cat(
      {query.narrow(-1, 0, plain), turned(query.narrow(-1, plain, options_.rope_dim), inputs)}, -1);
  const at::Tensor attended = scaled_attention({.query = whole_query,
                                                .key = key,
                                                .value = value,
                                                .mask = inputs.get("mask"),
                                                .sinks = {},
                                                .scale = scale_});
  const at::Tensor joined =
      attended.transpose(1, 2).reshape({x.size(0), attended.size(2), heads * options_.value_dim});
  return {{"output", only(o_->call({}, {{"input", joined}}))}};
}

}  // namespace shardproof
