#include "comm/recording.h"

#include <utility>

#include "comm/forwarding.h"

namespace shardproof {

namespace {

bool named(const Record& record, std::string_view operation, std::string_view axis) {
  return (operation.empty() || record.operation == operation) &&
         (axis.empty() || record.axis == axis);
}

class RecordingCommunicator final : public ForwardingCommunicator {
 public:
  RecordingCommunicator(CommPtr inner, std::shared_ptr<Recorder> recorder)
      : ForwardingCommunicator(std::move(inner)), recorder_(std::move(recorder)) {}

  Work all_reduce(at::Tensor out, at::Tensor in, ReduceOp op, const Site& site) override {
    Work work = ForwardingCommunicator::all_reduce(std::move(out), in, op, site);
    add("all_reduce", in, in.numel(), site);
    return work;
  }
  Work all_gather(at::Tensor out, at::Tensor in, Counts counts, const Site& site) override {
    Work work = ForwardingCommunicator::all_gather(std::move(out), in, counts, site);
    add("all_gather", in, in.numel(), site);
    return work;
  }
  Work reduce_scatter(at::Tensor out, at::Tensor in, Counts counts, ReduceOp op,
                      const Site& site) override {
    Work work = ForwardingCommunicator::reduce_scatter(std::move(out), in, counts, op, site);
    add("reduce_scatter", in, in.numel(), site);
    return work;
  }
  Work all_to_all(at::Tensor out, Counts recv_counts, at::Tensor in, Counts send_counts,
                  const Site& site) override {
    Work work =
        ForwardingCommunicator::all_to_all(std::move(out), recv_counts, in, send_counts, site);
    add("all_to_all", in, in.numel(), site);
    return work;
  }
  Work broadcast(at::Tensor tensor, int root, const Site& site) override {
    Work work = ForwardingCommunicator::broadcast(tensor, root, site);
    add("broadcast", tensor, rank() == root ? tensor.numel() : 0, site);
    return work;
  }
  Work gather(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override {
    Work work = ForwardingCommunicator::gather(std::move(out), in, counts, root, site);
    add("gather", in, in.numel(), site);
    return work;
  }
  Work scatter(at::Tensor out, at::Tensor in, Counts counts, int root, const Site& site) override {
    Work work = ForwardingCommunicator::scatter(out, in, counts, root, site);
    add("scatter", out, rank() == root ? in.numel() : 0, site);
    return work;
  }
  Work send(at::Tensor tensor, int to, int tag, const Site& site) override {
    Work work = ForwardingCommunicator::send(tensor, to, tag, site);
    add("send", tensor, tensor.numel(), site);
    return work;
  }
  Work recv(at::Tensor tensor, int from, int tag, const Site& site) override {
    Work work = ForwardingCommunicator::recv(tensor, from, tag, site);
    add("recv", tensor, 0, site);
    return work;
  }
  Work barrier(const Site& site) override {
    Work work = ForwardingCommunicator::barrier(site);
    add("barrier", at::Tensor(), 0, site);
    return work;
  }

 private:
  CommPtr wrap(CommPtr made) override { return record(std::move(made), recorder_); }

  void add(const char* operation, const at::Tensor& tensor, int64_t elements, const Site& site) {
    const bool typed = tensor.defined();
    recorder_->add({operation, name(), site.module, site.value, site.phase,
                    typed ? tensor.scalar_type() : at::ScalarType::Undefined, elements,
                    typed ? elements * static_cast<int64_t>(tensor.element_size()) : 0, size()});
  }

  std::shared_ptr<Recorder> recorder_;
};

}  // namespace

void Recorder::add(Record record) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
}

void Recorder::clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
}

std::vector<Record> Recorder::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

int64_t Recorder::count(std::string_view operation, std::string_view axis) const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const Record& record : records_) sum += named(record, operation, axis) ? 1 : 0;
  return sum;
}

int64_t Recorder::elements(std::string_view operation, std::string_view axis) const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const Record& record : records_) sum += named(record, operation, axis) ? record.elements : 0;
  return sum;
}

int64_t Recorder::bytes(std::string_view operation, std::string_view axis) const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const Record& record : records_) sum += named(record, operation, axis) ? record.bytes : 0;
  return sum;
}

CommPtr record(CommPtr inner, std::shared_ptr<Recorder> recorder) {
  return std::make_shared<RecordingCommunicator>(std::move(inner), std::move(recorder));
}

}  // namespace shardproof
