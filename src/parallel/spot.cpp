#include "parallel/spot.h"

#include "base/check.h"

namespace shardproof {
namespace {

constexpr int64_t kTokenDim = 1;  // of [batch, tokens, ...]

Placement at_port(Spot spot, const Module& module, const Port& port, bool sequence_parallel) {
  switch (spot) {
    case Spot::kWhole:
      return replicate();
    case Spot::kAddend:
      return partial();
    case Spot::kTokens:
      return shard(kTokenDim);
    case Spot::kStream:
      return sequence_parallel ? shard(kTokenDim) : replicate();
    case Spot::kFeature: {
      const ParamPtr followed = module.parameter(port.parameter);
      if (!followed) throw Misfit{fmt::format("its {} follows no parameter", port.name)};
      Cut cut = followed->cut(port.parameter_dim);
      if (cut.sections.empty()) cut = Cut::plain(followed->shape().at(port.parameter_dim));
      return shard(-1, std::move(cut));
    }
    default:
      SP_EXPECT(false, "a style puts a parameter's placement on {}", port.name);
  }
}

// What has no input features beside a weight that is cut by them is added to the output: whole on
// coordinate 0, zero elsewhere.
EdgeStyle without_columns(const EdgeStyle& edge, const Parameter& parameter) {
  if (edge.outside != Spot::kColumns || parameter.features().in >= 0) return edge;
  return {edge.name, Spot::kWhole, Spot::kAddend, Spot::kWhole, Spot::kWhole};
}

Placement at_parameter(Spot spot, const Parameter& parameter, bool sequence_parallel) {
  switch (spot) {
    case Spot::kWhole:
      return replicate();
    case Spot::kAddend:
      return partial();
    case Spot::kShareOfStream:
      return sequence_parallel ? partial() : replicate();
    case Spot::kFirst:
    case Spot::kRows:
    case Spot::kColumns: {
      const int64_t dim = cut_dim(spot, parameter);
      if (dim < 0) throw Misfit{"it has no features of this kind"};
      return shard(dim, parameter.cut(dim));
    }
    default:
      SP_EXPECT(false, "a style puts a port's placement on a parameter");
  }
}

bool is_copied(const Placement& placement, int64_t axis_size) {
  return placement.is_shard() && copies_block_size(placement.cut, axis_size) > 1;
}

}  // namespace

int64_t cut_dim(Spot spot, const Parameter& parameter) {
  switch (spot) {
    case Spot::kFirst:
      return 0;
    case Spot::kRows:
      return parameter.features().out;
    case Spot::kColumns:
      return parameter.features().in;
    default:
      return -1;
  }
}

Edge edge_at_port(const EdgeStyle& edge, const Module& module, const Port& port, int64_t axis_size,
                  bool sequence_parallel) {
  const auto at = [&](Spot spot) { return at_port(spot, module, port, sequence_parallel); };
  Edge result{at(edge.outside), at(edge.inside), at(edge.grad_inside), at(edge.grad_outside)};
  if (result.grad_outside.is_replicate() && is_copied(result.grad_inside, axis_size))
    result.grad_inside.kind = Placement::Kind::kAddends;
  return result;
}

Edge edge_at_parameter(const EdgeStyle& given, const Parameter& parameter, int64_t axis_size,
                       bool sequence_parallel) {
  const EdgeStyle edge = without_columns(given, parameter);
  const auto at = [&](Spot spot) { return at_parameter(spot, parameter, sequence_parallel); };
  Edge result{at(edge.outside), at(edge.inside), at(edge.grad_inside), at(edge.grad_outside)};
  if (result.grad_inside.is_shard() && copies_block_size(result.grad_inside.cut, axis_size) > 1) {
    result.grad_inside.kind = Placement::Kind::kAddends;
  }
  return result;
}

}  // namespace shardproof
