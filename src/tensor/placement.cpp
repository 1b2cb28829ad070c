#include "tensor/placement.h"

#include <algorithm>

#include "base/check.h"

namespace shardproof {

namespace {

// Part `index` of `count` items dealt to `parts`: evenly, the remainder to the low ones.
Interval dealt(int64_t count, int64_t parts, int64_t index) {
  const int64_t each = count / parts;
  const int64_t more = count % parts;
  const int64_t begin = index * each + std::min(index, more);
  return {begin, begin + each + (index < more ? 1 : 0)};
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What `coordinate` holds of one section that begins at `offset`.
void add_section(Intervals& result, const Section& section, int64_t offset, int64_t axis_size,
                 int64_t coordinate) {
  const int64_t units = ceil_div(section.width, section.unit);
  const int64_t r = block_size(section, axis_size);
  Interval positions = dealt(units, axis_size / r, coordinate / r);
  positions = {std::min(positions.begin * section.unit, section.width),
               std::min(positions.end * section.unit, section.width)};
  if (r > 1 && section.spread == Spread::kShare) {
    const int64_t sub_units = ceil_div(positions.size(), section.sub_unit);
    const Interval mine = dealt(sub_units, r, coordinate % r);
    positions = {std::min(positions.begin + mine.begin * section.sub_unit, positions.end),
                 std::min(positions.begin + mine.end * section.sub_unit, positions.end)};
  }
  result.push_back({offset + positions.begin, offset + positions.end});
}

}  // namespace

int64_t Cut::width() const {
  int64_t total = 0;
  for (const Section& section : sections) total += section.width;
  return total;
}

int64_t block_size(const Section& section, int64_t axis_size) {
  SP_EXPECT(section.unit > 0 && section.sub_unit > 0 && section.width >= 0,
            "section of width {} in units of {} and {}", section.width, section.unit,
            section.sub_unit);
  if (section.spread == Spread::kNone) return 1;
  const int64_t units = std::max<int64_t>(1, ceil_div(section.width, section.unit));
  for (int64_t r = axis_size; r > 1; --r) {
    if (axis_size % r == 0 && axis_size / r >= units) return r;
  }
  return 1;
}

int64_t copies_block_size(const Cut& cut, int64_t axis_size) {
  int64_t largest = 1;
  for (const Section& section : cut.sections) {
    if (section.spread == Spread::kCopies)
      largest = std::max(largest, block_size(section, axis_size));
  }
  return largest;
}

namespace {

// The sections of `cut` that `wanted` lets through, as `coordinate` holds them.
template <class Wanted>
Intervals intervals_where(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate,
                          Wanted wanted) {
  SP_EXPECT(0 <= coordinate && coordinate < axis_size, "coordinate {} on an axis of {}", coordinate,
            axis_size);
  if (cut.sections.empty()) {
    return wanted(Section{width}) ? normalized({dealt(width, axis_size, coordinate)}) : Intervals{};
  }
  SP_EXPECT(cut.width() == width, "a cut of {} positions on a dim of {}", cut.width(), width);
  Intervals result;
  int64_t offset = 0;
  for (const Section& section : cut.sections) {
    if (wanted(section)) add_section(result, section, offset, axis_size, coordinate);
    offset += section.width;
  }
  return normalized(std::move(result));
}

// Ranks that hold the same part of a section.
int64_t copies(const Section& section, int64_t axis_size) {
  return section.spread == Spread::kCopies ? block_size(section, axis_size) : 1;
}

}  // namespace

Intervals cut_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate) {
  return intervals_where(cut, width, axis_size, coordinate, [](const Section&) { return true; });
}

Intervals owned_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate) {
  return intervals_where(cut, width, axis_size, coordinate, [&](const Section& section) {
    return coordinate % copies(section, axis_size) == 0;
  });
}

Intervals copied_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate) {
  return intervals_where(cut, width, axis_size, coordinate,
                         [&](const Section& section) { return copies(section, axis_size) > 1; });
}

bool copies_in_part(const Cut& cut, int64_t axis_size) {
  const int64_t largest = copies_block_size(cut, axis_size);
  return std::any_of(cut.sections.begin(), cut.sections.end(), [&](const Section& section) {
    return section.width > 0 && copies(section, axis_size) != largest;
  });
}

std::string Placement::to_string() const {
  switch (kind) {
    case Kind::kReplicate:
      return "R";
    case Kind::kPartial:
      return "P";
    case Kind::kShard:
      return fmt::format("S({})", dim);
    case Kind::kAddends:
      return fmt::format("A({})", dim);
  }
  return "?";
}

Placement replicate() { return {}; }
Placement partial() { return {.kind = Placement::Kind::kPartial, .dim = 0, .cut = {}}; }
Placement shard(int64_t dim, Cut cut) {
  return {.kind = Placement::Kind::kShard, .dim = dim, .cut = std::move(cut)};
}
Placement addends(int64_t dim, Cut cut) {
  return {.kind = Placement::Kind::kAddends, .dim = dim, .cut = std::move(cut)};
}

Region region_of(const std::vector<int64_t>& shape, const Placements& placements,
                 const MeshShape& mesh, int64_t rank) {
  Region region = whole_region(shape);
  for (const auto& [axis, placement] : placements) {
    if (!placement.is_shard()) continue;
    SP_EXPECT(placement.dim >= 0 && placement.dim < static_cast<int64_t>(shape.size()),
              "a shard of dim {} of a tensor with {} dims", placement.dim, shape.size());
    Intervals& outer = region[placement.dim];
    outer = compose(outer, cut_intervals(placement.cut, total_size(outer), mesh.size(axis),
                                         mesh.coordinate(rank, axis)));
  }
  return region;
}

Region owned_region(const std::vector<int64_t>& shape, const Placements& placements,
                    const MeshShape& mesh, int64_t rank) {
  Region region = region_of(shape, placements, mesh, rank);
  bool counts = true;
  for (const MeshAxis& axis : mesh.axes()) {
    bool cut = false;
    for (const auto& [name, placement] : placements) {
      const auto parts = mesh.parts(name);
      cut |=
          placement.is_shard() && std::find(parts.begin(), parts.end(), axis.name) != parts.end();
    }
    counts &= cut || mesh.coordinate(rank, axis.name) == 0;
  }
  // What an axis leaves of a dim is narrowed to what the coordinate speaks for, as global
  // positions: what the axes after it cut away stays away.
  Region outer = whole_region(shape);
  for (const auto& [axis, placement] : placements) {
    if (!placement.is_shard()) continue;
    Intervals& held = outer[placement.dim];
    const int64_t size = mesh.size(axis);
    const int64_t coordinate = mesh.coordinate(rank, axis);
    const int64_t width = total_size(held);
    const Intervals owned = compose(held, owned_intervals(placement.cut, width, size, coordinate));
    region[placement.dim] = intersect(region[placement.dim], owned);
    held = compose(held, cut_intervals(placement.cut, width, size, coordinate));
  }
  if (!counts && !region.empty()) region.front() = {};
  return region;
}

}  // namespace shardproof
