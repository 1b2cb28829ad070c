// Cuts and placements: which part of a tensor a coordinate of a mesh axis holds. Pure functions.
//
// A Cut is what a model states about one dim of a parameter whatever the layout. A Placement puts
// it on an axis. The rule: each section of the dim is cut on its own into whole units; the axis
// falls into blocks of r neighbours, units are dealt to blocks evenly with the remainder to the low
// ones (so shards may be uneven or empty), and the members of a block hold its part as copies or
// share it by sub-unit. r is 1 unless the section asks for copies or sharing; then it is the
// largest divisor of the axis size with size / r >= units. Example, 9 query and 3 key/value heads:
// tp=2 gives 6/2 and 3/1 heads, tp=4 leaves one rank empty, tp=6 makes pairs that hold copies of
// one kv head and share its 3 queries 2/1.
#pragma once

#include <string>

#include "mesh/mesh_shape.h"
#include "tensor/interval.h"

namespace shardproof {

// What happens where a section has fewer units than the axis has ranks.
enum class Spread {
  kNone,    // the high ranks own nothing
  kCopies,  // neighbours hold copies of one unit
  kShare,   // neighbours share one unit by sub-units
};

struct Section {
  int64_t width = 0;  // positions along the dim; the last unit may be short
  int64_t unit = 1;   // positions that stay together
  Spread spread = Spread::kNone;
  int64_t sub_unit = 1;  // positions that stay together when neighbours share a unit
  bool operator==(const Section&) const = default;
};

struct Cut {
  std::vector<Section> sections;  // in order, together the whole dim; empty: one section, unit 1
  bool operator==(const Cut&) const = default;
  int64_t width() const;  // 0 where no sections are given

  static Cut plain(int64_t width) { return {{{width}}}; }
  static Cut units(int64_t width, int64_t unit, Spread spread = Spread::kNone,
                   int64_t sub_unit = 1) {
    return {{{width, unit, spread, sub_unit}}};
  }
};

// Neighbours in a block, r of the rule above.
int64_t block_size(const Section& section, int64_t axis_size);
// The largest block of any section: the ranks whose `Copies` must be summed or compared together.
int64_t copies_block_size(const Cut& cut, int64_t axis_size);

// What `coordinate` of an axis of `axis_size` holds of a dim of `width` positions.
Intervals cut_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate);

// Of that, what it speaks for: of sections held as copies only the first of a block does. Over all
// coordinates these cover the dim once.
Intervals owned_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate);
// Of that, the positions that the block of copies_block_size() holds as copies.
Intervals copied_intervals(const Cut& cut, int64_t width, int64_t axis_size, int64_t coordinate);
// True where shards are copies in some sections only (packed q | k | v on more ranks than there are
// key/value heads).
bool copies_in_part(const Cut& cut, int64_t axis_size);

struct Placement {
  enum class Kind {
    kReplicate,  // every coordinate holds the whole
    kPartial,    // every coordinate holds an addend of the whole
    kShard,      // by `cut` along `dim`
    kAddends,    // as kShard with copies, but members of a block hold addends still to be summed
  };
  Kind kind = Kind::kReplicate;
  int64_t dim = 0;  // of a parameter; of a value that modules pass, -1 means its last dim
  Cut cut;          // empty sections: even by single positions of what is being cut

  bool is_replicate() const { return kind == Kind::kReplicate; }
  bool is_partial() const { return kind == Kind::kPartial; }
  bool is_shard() const { return kind == Kind::kShard || kind == Kind::kAddends; }
  bool operator==(const Placement&) const = default;
  std::string to_string() const;  // "R", "P", "S(0)", "A(0)"
};

Placement replicate();
Placement partial();
Placement shard(int64_t dim, Cut cut = {});
Placement addends(int64_t dim, Cut cut);

// One placement on a named axis.
struct AxisPlacement {
  std::string axis;
  Placement placement;
  bool operator==(const AxisPlacement&) const = default;
};

// Where a tensor lies on a mesh, in nest order: the first cuts the global tensor, the next cuts
// what the first left, and so on. Axes not named hold copies.
using Placements = std::vector<AxisPlacement>;

// The part of a tensor of `shape` that `rank` holds.
Region region_of(const std::vector<int64_t>& shape, const Placements& placements,
                 const MeshShape& mesh, int64_t rank);

// Of region_of, what `rank` counts in norms and writes to files: each element of the tensor has
// exactly one owner, the lowest of the ranks that hold copies (or addends) of it.
Region owned_region(const std::vector<int64_t>& shape, const Placements& placements,
                    const MeshShape& mesh, int64_t rank);

}  // namespace shardproof
