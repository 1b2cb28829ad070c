#include "parallel/edge_hook.h"

#include "base/check.h"

namespace shardproof {

at::Tensor SharingScope::convert(const at::Tensor& value, const Edge& edge, const AxisView& axis,
                                 const Site& site) {
  for (const Entry& entry : entries_) {
    if (entry.value.is_same(value) && entry.edge == edge) return entry.converted;
  }
  at::Tensor converted = convert_with_grad(value, edge, Crossing::kIn, axis, site);
  entries_.push_back({value, edge, converted});
  return converted;
}

void TokenCount::before(Module& root, NamedTensors& inputs) {
  tokens_ = -1;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.defined() || tensor.dim() < 2) continue;
    tokens_ = tensor.size(1);
    return;
  }
  SP_VALIDATE(false, "{}: values are cut by tokens, but no input is [batch, tokens, ...]",
              root.label());
}

Edge TokenCount::complete(Edge edge) const {
  for (Placement* placement :
       {&edge.outside, &edge.inside, &edge.grad_inside, &edge.grad_outside}) {
    if (is_cut_by_tokens(*placement)) placement->cut = Cut::plain(tokens_);
  }
  return edge;
}

void EdgeHook::before(Module&, NamedTensors& inputs) {
  for (const ResolvedPort& port : module_.inputs) {
    SP_VALIDATE(inputs.has(port.name),
                "{}: style {} needs the input \"{}\", which the call did not give", module_.path,
                module_.style, port.name);
    if (port.edge.is_identity()) continue;
    at::Tensor& value = inputs.at(port.name);
    const Site site{module_.path, port.name, "forward"};
    const Edge edge = tokens_->complete(port.edge);
    value = parent_ ? parent_->convert(value, edge, axis_, site)
                    : convert_with_grad(value, edge, Crossing::kIn, axis_, site);
  }
}

void EdgeHook::after(Module&, NamedTensors& outputs) {
  for (const ResolvedPort& port : module_.outputs) {
    if (port.edge.is_identity()) continue;
    at::Tensor& value = outputs.at(port.name);
    value = convert_with_grad(value, tokens_->complete(port.edge), Crossing::kOut, axis_,
                              {module_.path, port.name, "forward"});
  }
}

}  // namespace shardproof
