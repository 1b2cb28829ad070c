#include "nn/embedding.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/check.h"

namespace shardproof {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The tokens whose rows are held, and which of the local rows each of them reads.
struct Lookup {
  at::Tensor tokens;
  at::Tensor rows;
};

Lookup find_rows(const at::Tensor& ids, const Intervals& held) {
  at::Tensor local = at::full_like(ids, -1);
  int64_t offset = 0;
  for (const Interval& interval : held) {
    const at::Tensor here = ids.ge(interval.begin).logical_and(ids.lt(interval.end));
    local = at::where(here, ids - (interval.begin - offset), local);
    offset += interval.size();
  }
  const at::Tensor tokens = at::nonzero(local.ge(0)).squeeze(1);
  return {tokens, local.index_select(0, tokens)};
}

// Zeros, with the rows that are held put where they are asked for. A function of its own, so that
// every rank builds the same graph whatever it holds.
class PartialLookup : public torch::autograd::Function<PartialLookup> {
 public:
  static Variable forward(AutogradContext* context, const Variable& weight,
                          const at::Tensor& tokens, const at::Tensor& rows,
                          const at::Tensor& graded_tokens, const at::Tensor& graded_rows,
                          int64_t count) {
    context->save_for_backward({graded_tokens, graded_rows});
    context->saved_data["rows"] = weight.size(0);
    at::Tensor output = at::zeros({count, weight.size(1)}, weight.options());
    if (tokens.numel() > 0) output.index_copy_(0, tokens, weight.index_select(0, rows));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& grad = grads[0];
    at::Tensor weight_grad =
        at::zeros({context->saved_data["rows"].toInt(), grad.size(1)}, grad.options());
    // index_add_ goes through the tokens in their order on the CPU: the same sums every time.
    if (saved[0].numel() > 0) weight_grad.index_add_(0, saved[1], grad.index_select(0, saved[0]));
    return {weight_grad, {}, {}, {}, {}, {}};
  }
};

}  // namespace

Embedding::Embedding(EmbeddingOptions options)
    : Module("Embedding", {.inputs = {{"input_ids"}}, .outputs = {{"output", true, "weight", 1}}}),
      padding_row_(options.padding_row),
      scale_(options.scale) {
  SP_EXPECT(!padding_row_ || (*padding_row_ >= 0 && *padding_row_ < options.rows),
            "the padding row {} is outside [0, {})", *padding_row_, options.rows);
  weight_ = add_parameter("weight",
                          std::make_shared<Parameter>(
                              std::vector{options.rows, options.width},
                              std::vector{Cut::plain(options.rows), Cut::plain(options.width)}));
}

InitialValues Embedding::initial_values(const std::string&) const {
  return {.kind = InitialValues::Kind::kNormal, .zero_row = padding_row_};
}

NamedTensors Embedding::forward(const NamedTensors& inputs) {
  const at::Tensor& ids = inputs.at("input_ids");
  const at::Tensor& weight = weight_->view();
  SP_EXPECT(weight.defined(), "{}: the weight is not placed yet", label());
  SP_EXPECT(ids.scalar_type() == at::kLong, "{}: input_ids must be int64, not {}", label(),
            at::toString(ids.scalar_type()));
  const at::Tensor flat = ids.reshape({-1});
  if (flat.numel() > 0) {
    const auto [low, high] = at::aminmax(flat);
    const int64_t rows = weight_->shape()[0];
    const int64_t bad = low.item<int64_t>() < 0 ? low.item<int64_t>() : high.item<int64_t>();
    SP_VALIDATE(bad >= 0 && bad < rows,
                "{}: the token id {} is outside the vocabulary of {} tokens", label(), bad, rows);
  }

  const Lookup lookup = find_rows(flat, weight_->held()[0]);
  Lookup graded = lookup;
  if (padding_row_) {
    const at::Tensor wanted =
        at::nonzero(flat.index_select(0, lookup.tokens).ne(*padding_row_)).squeeze(1);
    graded = {lookup.tokens.index_select(0, wanted), lookup.rows.index_select(0, wanted)};
  }
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(weight.size(1));
  at::Tensor output = PartialLookup::apply(weight, lookup.tokens, lookup.rows, graded.tokens,
                                           graded.rows, flat.numel());
  if (scale_) {
    const at::Tensor scale = at::scalar_tensor(*scale_, weight.options().dtype(at::kFloat));
    output = output * scale.to(weight.scalar_type());
  }
  return {{"output", output.reshape(shape)}};
}

}  // namespace shardproof
