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

void EdgeHook::before(Module&, NamedTensors& inputs) {
  for (const ResolvedPort& port : module_.inputs) {
    if (port.edge.is_identity()) continue;
    SP_VALIDATE(inputs.get(port.name).defined(),
                "{}: style {} needs the input \"{}\", which the call did not give", module_.path,
                module_.style, port.name);
    at::Tensor& value = inputs.at(port.name);
    const Site site{module_.path, port.name, "forward"};
    value = parent_ ? parent_->convert(value, port.edge, axis_, site)
                    : convert_with_grad(value, port.edge, Crossing::kIn, axis_, site);
  }
}

void EdgeHook::after(Module&, NamedTensors& outputs) {
  for (const ResolvedPort& port : module_.outputs) {
    if (port.edge.is_identity()) continue;
    at::Tensor& value = outputs.at(port.name);
    value = convert_with_grad(value, port.edge, Crossing::kOut, axis_,
                              {module_.path, port.name, "forward"});
  }
}

}  // namespace shardproof
