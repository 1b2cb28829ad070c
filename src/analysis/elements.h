// How many elements a conversion of tensor/conversion.h hands to its collective, without running
// it. Pure.
#pragma once

#include <string>

#include "comm/recording.h"
#include "tensor/conversion.h"

namespace shardproof {

// What the coordinate hands in where a value of this whole shape goes `from` -> `to` over an axis,
// counted as Record::elements counts; 0 where nothing communicates. Dim -1 is the last; the cuts of
// shards state their widths.
int64_t elements_handed_in(const std::vector<int64_t>& shape, Placement from, Placement to,
                           int64_t axis_size, int64_t coordinate);

// The operation's name in a Record: "all_reduce", "all_to_all", ...
std::string recorded_name(Operation operation);

// What DeviceMesh calls the communicator of an axis: a derived one by its parts. Another name
// ("world", "tp/2") is itself.
std::string communicator_name(const MeshShape& mesh, const std::string& axis);

// The record of a call on the communicator of an axis.
Record record_of(const MeshShape& mesh, std::string operation, const std::string& axis,
                 int64_t ranks, const Site& site, at::ScalarType dtype, int64_t elements);

// Elements of the part that a coordinate holds.
int64_t elements_held(const std::vector<int64_t>& shape, Placement placement, int64_t axis_size,
                      int64_t coordinate);

}  // namespace shardproof
