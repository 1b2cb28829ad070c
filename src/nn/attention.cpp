#include "nn/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/check.h"
#include "nn/rotary.h"
#include "nn/scaled_attention.h"

namespace shardproof {
namespace {

// The part of `held` that lies in `section`, counted from the section's begin.
Intervals within(const Intervals& held, const Interval& section) {
  Intervals inner = intersect(held, {section});
  for (Interval& interval : inner) {
    interval.begin -= section.begin;
    interval.end -= section.begin;
  }
  return inner;
}

}  // namespace

Attention::Attention(AttentionOptions options)
    : Module("Attention",
             {.inputs = {{"hidden_states"}, {"cos"}, {"sin"}, {"mask", /*required=*/false}}}),
      heads_(options.heads),
      scale_(options.scale.value_or(1.0 / std::sqrt(static_cast<double>(options.heads.head_dim)))) {
  SP_EXPECT(heads_.keys > 0 && heads_.queries % heads_.keys == 0,
            "{} query heads cannot share {} key/value heads evenly", heads_.queries, heads_.keys);
  const int64_t query_width = heads_.queries * heads_.head_dim;
  const int64_t key_width = heads_.keys * heads_.head_dim;
  const Cut query_cut =
      Cut::units(query_width, query_width / heads_.keys, Spread::kShare, heads_.head_dim);
  const Cut key_cut = Cut::units(key_width, heads_.head_dim, Spread::kCopies);
  const auto projection = [&](int64_t out, const Cut& cut) {
    return std::make_shared<Linear>(
        LinearOptions{.in = options.hidden, .out = out, .bias = options.qkv_bias, .out_cut = cut});
  };
  if (options.projections == AttentionOptions::Projections::kPacked) {
    const Section key = key_cut.sections.front();
    qkv_ = add_child("qkv_proj", projection(query_width + 2 * key_width,
                                            {{query_cut.sections.front(), key, key}}));
  } else {
    q_ = add_child("q_proj", projection(query_width, query_cut));
    k_ = add_child("k_proj", projection(key_width, key_cut));
    v_ = add_child("v_proj", projection(key_width, key_cut));
  }
  o_ = add_child("o_proj", std::make_shared<Linear>(LinearOptions{.in = query_width,
                                                                  .out = options.hidden,
                                                                  .bias = options.output_bias,
                                                                  .in_cut = query_cut}));
  if (options.head_norm) {
    RmsNormOptions norm = *options.head_norm;
    norm.width = heads_.head_dim;
    norm.in_runs = true;
    q_norm_ = add_child("q_norm", std::make_shared<RmsNorm>(norm));
    k_norm_ = add_child("k_norm", std::make_shared<RmsNorm>(norm));
  }
  if (options.sinks) {
    sinks_ = add_parameter(
        "sinks",
        std::make_shared<Parameter>(
            std::vector{heads_.queries},
            std::vector{Cut::units(heads_.queries, heads_.queries / heads_.keys, Spread::kShare)}));
  }
}

std::vector<Link> Attention::links() const {
  std::vector<Link> links;
  const auto flows = [&](LinkEnd from, LinkEnd to) { links.push_back({from, to}); };
  const auto together = [&](LinkEnd from, LinkEnd to) { links.push_back({from, to, true}); };
  const LinkEnd query = qkv_ ? LinkEnd{"qkv_proj", "output", 0} : LinkEnd{"q_proj", "output"};
  const LinkEnd key = qkv_ ? LinkEnd{"qkv_proj", "output", 1} : LinkEnd{"k_proj", "output"};
  const LinkEnd value = qkv_ ? LinkEnd{"qkv_proj", "output", 2} : LinkEnd{"v_proj", "output"};
  for (const char* child : {"q_proj", "k_proj", "v_proj", "qkv_proj"}) {
    if ((std::string(child) == "qkv_proj") == (qkv_ != nullptr))
      flows({"", "hidden_states"}, {child, "input"});
  }
  if (q_norm_) {
    flows(query, {"q_norm", "hidden_states"});
    flows(key, {"k_norm", "hidden_states"});
    flows({"q_norm", "output"}, {"o_proj", "input"});
  } else {
    flows(query, {"o_proj", "input"});
  }
  together(query, key);
  together(query, value);
  flows({"o_proj", "output"}, {"", "output"});
  return links;
}

std::array<Interval, 3> Attention::packed_sections() const {
  const int64_t query = heads_.queries * heads_.head_dim;
  const int64_t key = heads_.keys * heads_.head_dim;
  return {Interval{0, query}, {query, query + key}, {query + key, query + 2 * key}};
}

std::vector<int64_t> Attention::local_heads(const Module& projection, int64_t width, int64_t heads,
                                            const Intervals& held) const {
  try {
    return heads_of_output(width, heads, heads_.head_dim, held);
  } catch (const ContractError& error) {
    throw ContractError(projection.label() + ": " + error.what());
  }
}

at::Tensor Attention::by_head(const at::Tensor& projected) const {
  // The count is given, not inferred: there may be none.
  return projected
      .reshape({projected.size(0), projected.size(1), projected.size(2) / heads_.head_dim,
                heads_.head_dim})
      .transpose(1, 2);
}

Attention::Projected Attention::project(const at::Tensor& x) {
  if (qkv_) return project_packed(x);
  const at::Tensor query = only(q_->call({}, {{"input", x}}));
  const at::Tensor key = only(k_->call({}, {{"input", x}}));
  const at::Tensor value = only(v_->call({}, {{"input", x}}));
  const auto heads = [&](const Linear& projection, const at::Tensor& output, int64_t count) {
    return local_heads(projection, output.size(-1), count, projection.weight()->held().at(0));
  };
  Projected projected{.query = by_head(q_norm_ ? (*q_norm_)(query) : query),
                      .key = by_head(k_norm_ ? (*k_norm_)(key) : key),
                      .value = by_head(value),
                      .query_heads = heads(*q_, query, heads_.queries),
                      .key_heads = heads(*k_, key, heads_.keys)};
  const std::vector<int64_t> value_heads = heads(*v_, value, heads_.keys);
  SP_EXPECT(value_heads == projected.key_heads, "{}: v_proj gave the heads {}, k_proj {}", label(),
            value_heads, projected.key_heads);
  return projected;
}

Attention::Projected Attention::project_packed(const at::Tensor& x) {
  const at::Tensor packed = only(qkv_->call({}, {{"input", x}}));
  const std::array<Interval, 3> sections = packed_sections();
  Intervals held = qkv_->weight()->held().at(0);
  if (packed.size(-1) == sections[2].end && total_size(held) != sections[2].end)
    held = {{0, sections[2].end}};  // gathered since
  SP_EXPECT(packed.size(-1) == total_size(held),
            "{}: its output has width {}, the rows held of its weight are {}: it must stay as cut "
            "or become whole",
            qkv_->label(), packed.size(-1), total_size(held));
  std::array<at::Tensor, 3> parts;
  std::array<std::vector<int64_t>, 3> heads;
  int64_t begin = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const Intervals inner = within(held, sections[i]);
    const int64_t width = total_size(inner);
    heads[i] = local_heads(*qkv_, width, sections[i].size() / heads_.head_dim, inner);
    parts[i] = packed.narrow(-1, begin, width);
    begin += width;
  }
  SP_EXPECT(heads[1] == heads[2], "{}: qkv_proj gave the value heads {} and the key heads {}",
            label(), heads[2], heads[1]);
  const at::Tensor query = q_norm_ ? (*q_norm_)(parts[0]) : parts[0];
  const at::Tensor key = k_norm_ ? (*k_norm_)(parts[1]) : parts[1];
  return {by_head(query), by_head(key), by_head(parts[2]), heads[0], heads[1]};
}

std::vector<int64_t> Attention::local_key_positions(const Projected& projected) const {
  try {
    return key_positions(heads_, projected.query_heads, projected.key_heads);
  } catch (const ContractError& error) {
    throw ContractError(label() + ": " + error.what());
  }
}

std::shared_ptr<KvCache> Attention::make_cache(int64_t batch, int64_t capacity) const {
  const ParamPtr& weight = qkv_ ? qkv_->weight() : k_->weight();
  SP_EXPECT(weight->placed(), "{}: a cache is made when parameters are placed", label());
  const Intervals& rows = weight->held().at(0);
  const Intervals keys = qkv_ ? within(rows, packed_sections()[1]) : rows;
  return std::make_shared<KvCache>(KvCache::Shape{.batch = batch,
                                                  .heads = total_size(keys) / heads_.head_dim,
                                                  .capacity = capacity,
                                                  .head_dim = heads_.head_dim},
                                   weight->view().scalar_type());
}

NamedTensors Attention::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const at::Tensor& cos = inputs.at("cos");
  const at::Tensor& sin = inputs.at("sin");
  SP_EXPECT(x.dim() == 3, "{}: hidden_states must be [batch, length, hidden], not {}", label(),
            fmt::join(x.sizes(), "x"));
  const Projected projected = project(x);
  const std::vector<int64_t> positions = local_key_positions(projected);
  if (sinks_) {
    const std::vector<int64_t> heads = heads_of(sinks_->held().at(0), 1);
    SP_EXPECT(heads == projected.query_heads,
              "{}: the sinks of the heads {} are held, the local query heads are {}: cut sinks "
              "with their heads (local_params)",
              label(), heads, projected.query_heads);
  }
  const at::Tensor query = rotate(projected.query, cos, sin);
  at::Tensor key = rotate(projected.key, cos, sin);
  at::Tensor value = projected.value;
  if (cache_) {
    cache_->set_heads(key.size(1));
    const KvCache::Held held = cache_->append(key, value);
    key = held.key;
    value = held.value;
  }
  if (!is_uniform(positions, key.size(1))) {
    const at::Tensor index = at::tensor(positions, key.options().dtype(at::kLong));
    key = key.index_select(1, index);
    value = value.index_select(1, index);
  }
  const at::Tensor attended = scaled_attention({.query = query,
                                                .key = key,
                                                .value = value,
                                                .mask = inputs.get("mask"),
                                                .sinks = sinks_ ? sinks_->view() : at::Tensor(),
                                                .scale = scale_});
  const at::Tensor joined =
      attended.transpose(1, 2).reshape({x.size(0), query.size(2), query.size(1) * heads_.head_dim});
  return {{"output", only(o_->call({}, {{"input", joined}}))}};
}

}  // namespace shardproof
