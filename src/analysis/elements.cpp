#include "analysis/elements.h"

#include "base/check.h"
#include "tensor/counted_dim.h"

namespace shardproof {
namespace {

using Take = Intervals (*)(const Cut&, int64_t, int64_t, int64_t);

// The region of a coordinate, by cut_intervals, owned_intervals or copied_intervals.
Region part(const std::vector<int64_t>& shape, const Placement& placement, int64_t axis_size,
            int64_t coordinate, Take take) {
  Region region = whole_region(shape);
  if (placement.is_shard())
    region.at(placement.dim) = take(placement.cut, shape.at(placement.dim), axis_size, coordinate);
  return region;
}

}  // namespace

int64_t elements_held(const std::vector<int64_t>& shape, Placement placement, int64_t axis_size,
                      int64_t coordinate) {
  placement = counted_from_the_front(std::move(placement), static_cast<int64_t>(shape.size()));
  return numel(part(shape, placement, axis_size, coordinate, cut_intervals));
}

int64_t elements_handed_in(const std::vector<int64_t>& shape, Placement from, Placement to,
                           int64_t axis_size, int64_t coordinate) {
  from = counted_from_the_front(std::move(from), static_cast<int64_t>(shape.size()));
  to = counted_from_the_front(std::move(to), static_cast<int64_t>(shape.size()));
  const auto at = [&](const Placement& placement, int64_t c, Take take) {
    return part(shape, placement, axis_size, c, take);
  };
  switch (plan_conversion(from, to, axis_size)) {
    case Operation::kAllReduce:
      return numel(whole_region(shape));
    case Operation::kBlockSum: {
      const bool some = copies_in_part(from.cut, axis_size);
      return numel(at(from, coordinate, some ? copied_intervals : cut_intervals));
    }
    case Operation::kAllGather:
      return numel(at(from, coordinate, owned_intervals));
    case Operation::kReduceScatter: {
      int64_t sum = 0;  // copies count as often as they are held
      for (int64_t c = 0; c < axis_size; ++c) sum += numel(at(to, c, cut_intervals));
      return sum;
    }
    case Operation::kExchange: {
      const Region owned = at(from, coordinate, owned_intervals);
      int64_t sum = 0;
      for (int64_t c = 0; c < axis_size; ++c)
        sum += numel(intersect(at(to, c, cut_intervals), owned));
      return sum;
    }
    default:
      return 0;
  }
}

std::string recorded_name(Operation operation) {
  switch (operation) {
    case Operation::kBlockSum:
      return "all_reduce";
    case Operation::kExchange:
      return "all_to_all";
    default:
      return to_string(operation);
  }
}

std::string communicator_name(const MeshShape& mesh, const std::string& axis) {
  if (!mesh.has(axis)) return axis;
  const std::vector<std::string> joined = mesh.joined({axis});
  return joined.empty() ? axis : fmt::format("{}", fmt::join(joined, "*"));
}

Record record_of(const MeshShape& mesh, std::string operation, const std::string& axis,
                 int64_t ranks, const Site& site, at::ScalarType dtype, int64_t elements) {
  return {.operation = std::move(operation),
          .axis = communicator_name(mesh, axis),
          .module = site.module,
          .value = site.value,
          .phase = site.phase,
          .dtype = dtype,
          .elements = elements,
          .bytes = elements * static_cast<int64_t>(c10::elementSize(dtype)),
          .ranks = static_cast<int>(ranks)};
}

}  // namespace shardproof
