// Who holds and who wants which part of a tensor: the tensor cut into cells within which the answer
// is one. Pure.
#pragma once

#include <vector>

#include "tensor/interval.h"

namespace shardproof {

// Positions of one dim that the same ranks hold and the same ranks want.
struct DimClass {
  Intervals positions;  // ascending
  std::vector<bool> holders;
  std::vector<bool> wanters;
};

// The classes of dim `dim` of what ranks hold and want (one region a rank), by first position;
// positions that nobody holds and nobody wants are in none.
std::vector<DimClass> dim_classes(const std::vector<Region>& held,
                                  const std::vector<Region>& wanted, size_t dim);

// A product of classes. Cells are disjoint, not empty, and together what somebody wants.
struct Cell {
  Region region;
  std::vector<bool> holders;
  std::vector<bool> wanters;
};
std::vector<Cell> wanted_cells(const std::vector<Region>& held, const std::vector<Region>& wanted);

}  // namespace shardproof
