#include "nn/attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/check.h"
#include "nn/rotary.h"

namespace shardproof {

Attention::Attention(AttentionOptions options)
    : Module("Attention",
             {.inputs = {{"hidden_states"}, {"cos"}, {"sin"}, {"mask", /*required=*/false}}}),
      heads_(options.heads) {
  SP_EXPECT(heads_.keys > 0 && heads_.queries % heads_.keys == 0,
            "{} query heads cannot share {} key/value heads evenly", heads_.queries, heads_.keys);
  const int64_t query_width = heads_.queries * heads_.head_dim;
  const int64_t key_width = heads_.keys * heads_.head_dim;
  const Cut query_cut =
      Cut::units(query_width, query_width / heads_.keys, Spread::kShare, heads_.head_dim);
  const Cut key_cut = Cut::units(key_width, heads_.head_dim, Spread::kCopies);
  const LinearOptions query = {
      .in = options.hidden, .out = query_width, .bias = options.bias, .out_cut = query_cut};
  const LinearOptions key = {
      .in = options.hidden, .out = key_width, .bias = options.bias, .out_cut = key_cut};
  q_ = add_child("q_proj", std::make_shared<Linear>(query));
  k_ = add_child("k_proj", std::make_shared<Linear>(key));
  v_ = add_child("v_proj", std::make_shared<Linear>(key));
  o_ = add_child(
      "o_proj",
      std::make_shared<Linear>(LinearOptions{
          .in = query_width, .out = options.hidden, .bias = options.bias, .in_cut = query_cut}));
}

std::vector<int64_t> Attention::local_key_positions() const {
  const Intervals& query_held = q_->weight()->held().at(0);
  const Intervals& key_held = k_->weight()->held().at(0);
  SP_EXPECT(v_->weight()->held().at(0) == key_held, "{}: v_proj and k_proj hold different heads",
            label());
  SP_EXPECT(o_->weight()->held().at(1) == query_held, "{}: o_proj and q_proj hold different heads",
            label());
  try {
    return key_positions(heads_, heads_of(query_held, heads_.head_dim),
                         heads_of(key_held, heads_.head_dim));
  } catch (const ContractError& error) {
    throw ContractError(label() + ": " + error.what());
  }
}

at::Tensor Attention::by_head(const at::Tensor& projected) const {
  // The count is given, not inferred: there may be none.
  return projected
      .reshape({projected.size(0), projected.size(1), projected.size(2) / heads_.head_dim,
                heads_.head_dim})
      .transpose(1, 2);
}

std::shared_ptr<KvCache> Attention::make_cache(int64_t batch, int64_t capacity) const {
  const ParamPtr& weight = k_->weight();
  SP_EXPECT(weight->placed(), "{}: a cache is made when parameters are placed", label());
  const auto heads = static_cast<int64_t>(heads_of(weight->held().at(0), heads_.head_dim).size());
  return std::make_shared<KvCache>(
      KvCache::Shape{
          .batch = batch, .heads = heads, .capacity = capacity, .head_dim = heads_.head_dim},
      weight->view().scalar_type());
}

at::Tensor Attention::attend(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& mask) const {
  const int64_t length = query.size(2);
  const int64_t keys = key.size(2);
  std::optional<at::Tensor> allowed;
  if (mask.defined()) {
    SP_EXPECT(mask.dim() == 4 && mask.size(2) == length && mask.size(3) == keys,
              "{}: the mask is {} for {} queries and {} keys", label(),
              fmt::join(mask.sizes(), "x"), length, keys);
    allowed = mask;
  } else if (keys != length) {  // the queries are the last of the tokens held
    allowed = at::ones({length, keys}, query.options().dtype(at::kBool)).tril(keys - length);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(heads_.head_dim));
  return at::scaled_dot_product_attention(query, key, value, allowed, /*dropout_p=*/0.0,
                                          /*is_causal=*/!allowed, scale,
                                          /*enable_gqa=*/key.size(1) != query.size(1));
}

NamedTensors Attention::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const at::Tensor& cos = inputs.at("cos");
  const at::Tensor& sin = inputs.at("sin");
  SP_EXPECT(x.dim() == 3, "{}: hidden_states must be [batch, length, hidden], not {}", label(),
            fmt::join(x.sizes(), "x"));
  const std::vector<int64_t> positions = local_key_positions();
  const auto query_count = static_cast<int64_t>(positions.size());

  const at::Tensor query = rotate(by_head(only(q_->call({}, {{"input", x}}))), cos, sin);
  at::Tensor key = rotate(by_head(only(k_->call({}, {{"input", x}}))), cos, sin);
  at::Tensor value = by_head(only(v_->call({}, {{"input", x}})));
  SP_EXPECT(
      query.size(1) == query_count,
      "{}: q_proj gave {} heads, the rows held of its weight are {}: its output must stay as cut",
      label(), query.size(1), query_count);
  if (cache_) {
    const KvCache::Held held = cache_->append(key, value);
    key = held.key;
    value = held.value;
  }
  if (!is_uniform(positions, key.size(1))) {
    const at::Tensor index = at::tensor(positions, key.options().dtype(at::kLong));
    key = key.index_select(1, index);
    value = value.index_select(1, index);
  }
  const at::Tensor attended = attend(query, key, value, inputs.get("mask"));
  const at::Tensor joined =
      attended.transpose(1, 2).reshape({x.size(0), x.size(1), query_count * heads_.head_dim});
  return {{"output", only(o_->call({}, {{"input", joined}}))}};
}

}  // namespace shardproof
