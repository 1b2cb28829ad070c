#include "io/read_region.h"

#include <ATen/ATen.h>

#include "base/check.h"

namespace shardproof {
namespace {

class BoxReader {
 public:
  BoxReader(const SafetensorsFile& file, const std::string& name, const Region& region)
      : file_(file), name_(name), region_(region), begin_(region.size()), size_(region.size()) {}

  // The boxes of dims `dim`.. into `target`, one after the other; the dims before are chosen.
  void read(size_t dim, const at::Tensor& target) {
    if (dim == region_.size()) return read_box(target);
    int64_t offset = 0;
    for (const Interval& interval : region_[dim]) {
      begin_[dim] = interval.begin;
      size_[dim] = interval.size();
      read(dim + 1, target.narrow(static_cast<int64_t>(dim), offset, interval.size()));
      offset += interval.size();
    }
  }

 private:
  void read_box(const at::Tensor& target) const {
    if (target.is_cpu() && target.is_contiguous() &&
        target.scalar_type() == file_.scalar_type(name_)) {
      file_.read_box_into(name_, begin_, size_, target);
    } else {
      target.copy_(file_.read_box(name_, begin_, size_));
    }
  }

  const SafetensorsFile& file_;
  const std::string& name_;
  const Region& region_;
  std::vector<int64_t> begin_, size_;  // of the box
};

}  // namespace

void read_region_into(const SafetensorsFile& file, const std::string& name, const Region& region,
                      const at::Tensor& out) {
  SP_EXPECT(out.sizes() == local_shape(region), "the region of '{}' has shape {}, `out` has {}",
            name, local_shape(region), out.sizes().vec());
  BoxReader(file, name, region).read(0, out);
}

at::Tensor read_region(const SafetensorsFile& file, const std::string& name, const Region& region) {
  at::Tensor out =
      at::empty(local_shape(region), at::device(at::kCPU).dtype(file.scalar_type(name)));
  read_region_into(file, name, region, out);
  return out;
}

}  // namespace shardproof
