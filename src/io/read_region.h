// Reading a region of a tensor in a file: the product of lists of intervals, box by box.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "io/safetensors_file.h"
#include "tensor/interval.h"

namespace shardproof {

// The positions `region` of tensor `name`, in the order of the region, into `out`: of shape
// local_shape(region), of any dtype, strides and device; values are converted. Only the bytes of
// the region are read (see SafetensorsFile::read_box); beside `out` a box of it is in memory at
// most, and none where `out` is on the CPU and holds the box contiguously in the file's dtype.
//
// Throws ContractError for another shape, or positions outside the tensor.
void read_region_into(const SafetensorsFile& file, const std::string& name, const Region& region,
                      const at::Tensor& out);

// The same as a new contiguous tensor of the file's dtype.
at::Tensor read_region(const SafetensorsFile& file, const std::string& name, const Region& region);

}  // namespace shardproof
