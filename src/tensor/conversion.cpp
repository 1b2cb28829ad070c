#include "tensor/conversion.h"

#include <numeric>

#include "base/check.h"
#include "tensor/counted_dim.h"
#include "tensor/region_copy.h"

namespace shardproof {

namespace {

using Counts = std::vector<int64_t>;

// The global shape of a value whose local part is `local`.
std::vector<int64_t> global_shape(const at::Tensor& local, const Placement& placement) {
  std::vector<int64_t> shape = local.sizes().vec();
  if (placement.is_shard()) {
    SP_EXPECT(placement.dim < local.dim(), "a shard of dim {} of a value with {} dims",
              placement.dim, local.dim());
    SP_EXPECT(!placement.cut.sections.empty(), "a sharded dim needs a cut with its global width");
    shape[placement.dim] = placement.cut.width();
  }
  return shape;
}

Region region_at(const std::vector<int64_t>& shape, const Placement& placement, int64_t axis_size,
                 int64_t coordinate) {
  Region region = whole_region(shape);
  if (placement.is_shard()) {
    region[placement.dim] =
        cut_intervals(placement.cut, shape[placement.dim], axis_size, coordinate);
  }
  return region;
}

// Of region_at, what the coordinate speaks for where others hold copies.
Region owned_at(const std::vector<int64_t>& shape, const Placement& placement, int64_t axis_size,
                int64_t coordinate) {
  Region region = whole_region(shape);
  if (placement.is_shard()) {
    region[placement.dim] =
        owned_intervals(placement.cut, shape[placement.dim], axis_size, coordinate);
  }
  return region;
}

int64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

at::Tensor all_gather(const at::Tensor& local, const Placement& from, const AxisView& axis,
                      const Site& site) {
  const auto shape = global_shape(local, from);
  Counts counts;
  for (int64_t c = 0; c < axis.size; ++c)
    counts.push_back(numel(owned_at(shape, from, axis.size, c)));
  at::Tensor received = at::empty({sum(counts)}, local.options());
  const Region held = region_at(shape, from, axis.size, axis.coordinate);
  const Region owned = owned_at(shape, from, axis.size, axis.coordinate);
  const at::Tensor mine = take(local, held, owned).reshape({-1});
  axis.comm->all_gather(received, mine, counts, site).wait();
  at::Tensor whole = at::empty(shape, local.options());
  const Region everything = whole_region(shape);
  int64_t offset = 0;
  for (int64_t c = 0; c < axis.size; ++c) {
    if (counts[c] == 0) continue;
    const Region region = owned_at(shape, from, axis.size, c);
    put(whole, everything, received.narrow(0, offset, counts[c]).view(local_shape(region)), region);
    offset += counts[c];
  }
  return whole;
}

at::Tensor reduce_scatter(const at::Tensor& local, const Placement& to, const AxisView& axis,
                          const Site& site) {
  const auto shape = local.sizes().vec();
  const Region held = whole_region(shape);
  Counts counts;
  std::vector<at::Tensor> parts;
  for (int64_t c = 0; c < axis.size; ++c) {
    const Region region = region_at(shape, to, axis.size, c);
    counts.push_back(numel(region));
    parts.push_back(take(local, held, region).reshape({-1}));
  }
  const Region mine = region_at(shape, to, axis.size, axis.coordinate);
  at::Tensor result = at::empty(local_shape(mine), local.options());
  axis.comm->reduce_scatter(result, at::cat(parts), counts, ReduceOp::kSum, site).wait();
  return result;
}

// Each target coordinate needs, of each source part, what both regions share.
at::Tensor exchange(const at::Tensor& local, const Placement& from, const Placement& to,
                    const AxisView& axis, const Site& site) {
  const auto shape = global_shape(local, from);
  const Region held = region_at(shape, from, axis.size, axis.coordinate);
  const Region owned = owned_at(shape, from, axis.size, axis.coordinate);
  const Region wanted = region_at(shape, to, axis.size, axis.coordinate);
  Counts send_counts, recv_counts;
  std::vector<at::Tensor> parts;
  std::vector<Region> arriving;
  for (int64_t c = 0; c < axis.size; ++c) {
    const Region out = intersect(region_at(shape, to, axis.size, c), owned);
    parts.push_back(numel(out) > 0 ? take(local, held, out).reshape({-1})
                                   : at::empty({0}, local.options()));
    send_counts.push_back(parts.back().numel());
    arriving.push_back(intersect(wanted, owned_at(shape, from, axis.size, c)));
    recv_counts.push_back(numel(arriving.back()));
  }
  at::Tensor received = at::empty({sum(recv_counts)}, local.options());
  axis.comm->all_to_all(received, recv_counts, at::cat(parts), send_counts, site).wait();
  at::Tensor result = at::empty(local_shape(wanted), local.options());
  int64_t offset = 0;
  for (int64_t c = 0; c < axis.size; ++c) {
    if (recv_counts[c] == 0) continue;
    put(result, wanted, received.narrow(0, offset, recv_counts[c]).view(local_shape(arriving[c])),
        arriving[c]);
    offset += recv_counts[c];
  }
  return result;
}

// As addends: what others hold too is theirs to give.
at::Tensor slice(const at::Tensor& local, const Placement& to, const AxisView& axis) {
  const auto shape = local.sizes().vec();
  const Region everything = whole_region(shape);
  const Region held = region_at(shape, to, axis.size, axis.coordinate);
  if (to.kind != Placement::Kind::kAddends) return take(local, everything, held);
  const Region owned = owned_at(shape, to, axis.size, axis.coordinate);
  at::Tensor part = at::zeros(local_shape(held), local.options());
  put(part, held, take(local, everything, owned), owned);
  return part;
}

at::Tensor embed(const at::Tensor& local, const Placement& from, const AxisView& axis) {
  const auto shape = global_shape(local, from);
  at::Tensor whole = at::zeros(shape, local.options());
  const Region owned = owned_at(shape, from, axis.size, axis.coordinate);
  const Region held = region_at(shape, from, axis.size, axis.coordinate);
  put(whole, whole_region(shape), take(local, held, owned), owned);
  return whole;
}

at::Tensor all_reduce(const at::Tensor& local, Communicator& comm, const Site& site) {
  at::Tensor result = at::empty(local.sizes(), local.options());
  comm.all_reduce(result, local, ReduceOp::kSum, site).wait();
  return result;
}

// Sums what the block holds as copies; the rest of the shard is nobody else's.
at::Tensor block_sum(const at::Tensor& local, const Placement& placement, const AxisView& axis,
                     const Site& site) {
  SP_EXPECT(axis.block != nullptr, "block_sum needs the communicator of the block");
  if (!copies_in_part(placement.cut, axis.size)) return all_reduce(local, *axis.block, site);
  const auto shape = global_shape(local, placement);
  const Region held = region_at(shape, placement, axis.size, axis.coordinate);
  Region copied = held;
  copied[placement.dim] =
      copied_intervals(placement.cut, shape[placement.dim], axis.size, axis.coordinate);
  at::Tensor result = local.clone();
  put(result, held, all_reduce(take(local, held, copied), *axis.block, site), copied);
  return result;
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kNone:
      return "none";
    case Operation::kSlice:
      return "slice";
    case Operation::kMask:
      return "mask";
    case Operation::kEmbed:
      return "embed";
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kBlockSum:
      return "block_sum";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kExchange:
      return "exchange";
  }
  return "?";
}

bool communicates(Operation operation) { return operation >= Operation::kAllReduce; }

Operation plan_conversion(const Placement& from, const Placement& to, int64_t axis_size) {
  using Kind = Placement::Kind;
  if (axis_size == 1 || from == to) return Operation::kNone;
  const bool to_shard = to.kind == Kind::kShard;
  switch (from.kind) {
    case Kind::kReplicate:
      if (to.is_shard()) return Operation::kSlice;
      if (to.is_partial()) return Operation::kMask;
      break;
    case Kind::kPartial:
      if (to_shard) return Operation::kReduceScatter;
      if (to.is_replicate()) return Operation::kAllReduce;
      break;
    case Kind::kShard:
      if (to_shard) return Operation::kExchange;
      if (to.is_partial()) return Operation::kEmbed;
      if (to.is_replicate()) return Operation::kAllGather;
      break;
    case Kind::kAddends:
      if (to_shard && to.dim == from.dim && to.cut == from.cut) {
        return copies_block_size(from.cut, axis_size) > 1 ? Operation::kBlockSum : Operation::kNone;
      }
      break;
  }
  SP_EXPECT(false, "no conversion from {} to {}", from.to_string(), to.to_string());
}

at::Tensor convert(const at::Tensor& local, const Placement& given_from, const Placement& given_to,
                   const AxisView& axis, const Site& site) {
  const Placement from = counted_from_the_front(given_from, local.dim());
  const Placement to = counted_from_the_front(given_to, local.dim());
  switch (plan_conversion(from, to, axis.size)) {
    case Operation::kNone:
      return local;
    case Operation::kSlice:
      return slice(local, to, axis);
    case Operation::kMask:
      return axis.coordinate == 0 ? local : at::zeros_like(local);
    case Operation::kEmbed:
      return embed(local, from, axis);
    case Operation::kAllReduce:
      return all_reduce(local, *axis.comm, site);
    case Operation::kBlockSum:
      return block_sum(local, from, axis, site);
    case Operation::kAllGather:
      return all_gather(local, from, axis, site);
    case Operation::kReduceScatter:
      return reduce_scatter(local, to, axis, site);
    case Operation::kExchange:
      return exchange(local, from, to, axis, site);
  }
  return local;
}

}  // namespace shardproof
