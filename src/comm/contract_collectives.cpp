#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "comm/contract_cases.h"
#include "comm/recording.h"

namespace shardproof {

namespace {

const Site kSite{"model.layers.0", "weight", "forward"};
constexpr at::ScalarType kDtypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kBool};
constexpr int64_t kElements[] = {0, 1, 7, 100003};

enum class Form { kApart, kInPlace, kStrided };

// Values that round when they are added in a low precision, different on every rank. Kept, as
// making them takes longer than moving them: not to be written to.
at::Tensor values(int rank, int64_t count, at::ScalarType dtype) {
  thread_local std::map<std::tuple<int, int64_t, at::ScalarType>, at::Tensor> made;
  at::Tensor& result = made[{rank, count, dtype}];
  if (result.defined()) return result;
  const at::Tensor raw =
      (at::arange(count, at::kLong) * 7919 + rank * 104729 + 13).remainder(1009) - 504;
  if (dtype == at::kBool) return result = raw.remainder(5) == 0;
  return result = dtype == at::kLong ? raw : (raw.to(at::kDouble) / 37.0).to(dtype);
}

// Every second element of a twice as long tensor.
at::Tensor strided_like(const at::Tensor& tensor) {
  at::Tensor wide = at::zeros({tensor.numel(), 2}, tensor.options());
  wide.select(1, 1).copy_(tensor);
  return wide.select(1, 1);
}

at::Tensor blank(int64_t count, at::ScalarType dtype, Form form) {
  const at::Tensor zeros = at::zeros({count}, at::TensorOptions(dtype));
  return form == Form::kStrided ? strided_like(zeros) : zeros;
}

at::Tensor shaped(const at::Tensor& tensor, Form form) {
  return form == Form::kStrided ? strided_like(tensor) : tensor.clone();
}

at::Tensor reduced(ReduceOp op, const std::vector<at::Tensor>& parts) {
  const auto dtype = parts[0].scalar_type();
  if (dtype == at::kBool) {
    at::Tensor result = parts[0].clone();
    for (const at::Tensor& part : parts) {
      result = op == ReduceOp::kMin ? result.logical_and(part) : result.logical_or(part);
    }
    return result;
  }
  const auto wide = dtype == at::kBFloat16 ? at::kFloat : dtype;
  at::Tensor result = parts[0].to(wide);
  for (size_t i = 1; i < parts.size(); ++i) {
    const at::Tensor next = parts[i].to(wide);
    result = op == ReduceOp::kSum   ? result + next
             : op == ReduceOp::kMax ? at::maximum(result, next)
                                    : at::minimum(result, next);
  }
  return result.to(dtype);
}

at::Tensor reduced_values(ReduceOp op, int ranks, int64_t count, at::ScalarType dtype) {
  thread_local std::map<std::tuple<ReduceOp, int, int64_t, at::ScalarType>, at::Tensor> made;
  at::Tensor& result = made[{op, ranks, count, dtype}];
  if (result.defined()) return result;
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(values(rank, count, dtype));
  return result = reduced(op, parts);
}

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

int64_t before(const std::vector<int64_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
}

// Calls check(dtype, counts, form) with even and uneven counts (every second one zero).
void for_all(const CommPtr& comm,
             const std::function<void(at::ScalarType, const std::vector<int64_t>&, Form)>& check) {
  for (const auto dtype : kDtypes) {
    for (const int64_t elements : kElements) {
      std::vector<int64_t> even(static_cast<size_t>(comm->size()), elements);
      std::vector<int64_t> uneven;
      for (int rank = 0; rank < comm->size(); ++rank) {
        uneven.push_back(rank % 2 == 1 ? 0 : elements + rank);
      }
      for (const auto form : {Form::kApart, Form::kInPlace, Form::kStrided}) {
        SCOPED_TRACE(fmt::format("rank {} of {}, {}, {} elements, form {}", comm->rank(),
                                 comm->size(), toString(dtype), elements, static_cast<int>(form)));
        check(dtype, even, form);
        check(dtype, uneven, form);
      }
    }
  }
}

void all_reduce_adds(const CommPtr& comm) {
  for_all(comm, [&](at::ScalarType dtype, const std::vector<int64_t>& counts, Form form) {
    const int64_t count = counts[0];
    for (const auto op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      const at::Tensor in = shaped(values(comm->rank(), count, dtype), form);
      const at::Tensor out = form == Form::kInPlace ? in : blank(count, dtype, form);
      comm->all_reduce(out, in, op, kSite).wait();
      EXPECT_TRUE(at::equal(out, reduced_values(op, comm->size(), count, dtype)));
      if (form != Form::kInPlace) {
        EXPECT_TRUE(at::equal(in, values(comm->rank(), count, dtype)));
      }
    }
  });
}

void all_gather_joins(const CommPtr& comm) {
  for_all(comm, [&](at::ScalarType dtype, const std::vector<int64_t>& counts, Form form) {
    const int64_t own = counts[static_cast<size_t>(comm->rank())];
    const at::Tensor out = blank(total(counts), dtype, form);
    at::Tensor in = shaped(values(comm->rank(), own, dtype), form);
    if (form == Form::kInPlace) {
      out.narrow(0, before(counts, comm->rank()), own).copy_(in);
      in = out.narrow(0, before(counts, comm->rank()), own);
    }
    comm->all_gather(out, in, counts, kSite).wait();
    for (int rank = 0; rank < comm->size(); ++rank) {
      const int64_t count = counts[static_cast<size_t>(rank)];
      EXPECT_TRUE(
          at::equal(out.narrow(0, before(counts, rank), count), values(rank, count, dtype)));
    }
  });
}

void reduce_scatter_adds(const CommPtr& comm) {
  for_all(comm, [&](at::ScalarType dtype, const std::vector<int64_t>& counts, Form form) {
    const int64_t own = counts[static_cast<size_t>(comm->rank())];
    const int64_t begin = before(counts, comm->rank());
    for (const auto op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
      const at::Tensor in = shaped(values(comm->rank(), total(counts), dtype), form);
      const at::Tensor out =
          form == Form::kInPlace ? in.narrow(0, begin, own) : blank(own, dtype, form);
      comm->reduce_scatter(out, in, counts, op, kSite).wait();
      const at::Tensor all = reduced_values(op, comm->size(), total(counts), dtype);
      EXPECT_TRUE(at::equal(out, all.narrow(0, begin, own)));
    }
  });
}

void all_to_all_exchanges(const CommPtr& comm) {
  for_all(comm, [&](at::ScalarType dtype, const std::vector<int64_t>& counts, Form form) {
    // Rank r sends counts[(r + peer) % size] elements to each peer.
    const auto between = [&](int from, int to) {
      return counts[static_cast<size_t>((from + to) % comm->size())];
    };
    std::vector<int64_t> send;
    std::vector<int64_t> receive;
    for (int peer = 0; peer < comm->size(); ++peer) {
      send.push_back(between(comm->rank(), peer));
      receive.push_back(between(peer, comm->rank()));
    }
    const at::Tensor in = shaped(values(comm->rank(), total(send), dtype), form);
    const at::Tensor out = form == Form::kInPlace ? in : blank(total(receive), dtype, form);
    comm->all_to_all(out, receive, in, send, kSite).wait();
    for (int peer = 0; peer < comm->size(); ++peer) {
      int64_t begin = 0;
      for (int to = 0; to < comm->rank(); ++to) begin += between(peer, to);
      const int64_t count = between(peer, comm->rank());
      const at::Tensor sent = values(peer, total(send), dtype).narrow(0, begin, count);
      EXPECT_TRUE(at::equal(out.narrow(0, before(receive, peer), count), sent));
    }
  });
}

void roots_hand_out_and_collect(const CommPtr& comm) {
  const int root = comm->size() - 1;
  for_all(comm, [&](at::ScalarType dtype, const std::vector<int64_t>& counts, Form form) {
    const int64_t own = counts[static_cast<size_t>(comm->rank())];
    const int64_t begin = before(counts, comm->rank());
    const bool is_root = comm->rank() == root;

    const at::Tensor shared = shaped(values(comm->rank(), counts[0], dtype), form);
    comm->broadcast(shared, root, kSite).wait();
    EXPECT_TRUE(at::equal(shared, values(root, counts[0], dtype)));

    at::Tensor whole = is_root ? shaped(values(root, total(counts), dtype), form) : at::Tensor();
    at::Tensor part = blank(own, dtype, form);
    if (is_root && form == Form::kInPlace) part = whole.narrow(0, begin, own);
    comm->scatter(part, whole, counts, root, kSite).wait();
    EXPECT_TRUE(at::equal(part, values(root, total(counts), dtype).narrow(0, begin, own)));

    at::Tensor joined = is_root ? blank(total(counts), dtype, form) : at::Tensor();
    if (is_root && form == Form::kInPlace) {
      joined.narrow(0, begin, own).copy_(part);
      part = joined.narrow(0, begin, own);
    }
    comm->gather(joined, part, counts, root, kSite).wait();
    if (is_root) {
      EXPECT_TRUE(at::equal(joined, values(root, total(counts), dtype)));
    }
  });
}

void transposed_tensors_move_in_logical_order(const CommPtr& comm) {
  const at::Tensor in = (at::arange(6, at::kDouble) + 10 * comm->rank()).view({2, 3}).t();
  const at::Tensor out = at::zeros({2, 3 * comm->size()}, at::kDouble).t();
  const std::vector<int64_t> counts(static_cast<size_t>(comm->size()), 6);

  comm->all_gather(out, in, counts, kSite).wait();

  for (int rank = 0; rank < comm->size(); ++rank) {
    const at::Tensor sent = (at::arange(6, at::kDouble) + 10 * rank).view({2, 3}).t();
    EXPECT_TRUE(at::equal(out.narrow(0, 3 * rank, 3), sent));
  }
}

void messages_keep_their_order(const CommPtr& comm) {
  const int next = (comm->rank() + 1) % comm->size();
  const int last = (comm->rank() + comm->size() - 1) % comm->size();
  const std::vector<double> sent = {1.0, 2.0, 3.0};  // tags 5, 5, 9
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> in;
  std::vector<Work> works;
  for (const double value : sent) {
    out.push_back(at::full({4}, value + 10 * comm->rank(), at::kDouble));
    in.push_back(at::zeros({4}, at::kDouble));
    works.push_back(comm->send(out.back(), next, value < 3 ? 5 : 9, kSite));
  }
  works.push_back(comm->recv(in[2], last, 9, kSite));
  works.push_back(comm->recv(in[0], last, 5, kSite));
  works.push_back(comm->recv(in[1], last, 5, kSite));

  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();

  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(at::equal(in[i], at::full({4}, sent[i] + 10 * last, at::kDouble)));
  }
}

void works_are_waited_for_in_any_order(const CommPtr& comm) {
  const CommPtr other = comm->split(0, -comm->rank(), "other");  // the same ranks, reversed
  constexpr int64_t kCount = 50000;                              // two phases
  std::vector<at::Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(at::full({kCount}, 1.0 + i + comm->rank(), at::kDouble));
    const CommPtr& on = i % 2 == 0 ? comm : other;
    works.push_back(on->all_reduce(tensors.back(), tensors.back(), ReduceOp::kSum, kSite));
  }

  if (comm->rank() % 2 == 1) std::reverse(works.begin(), works.end());
  for (Work& work : works) work.wait();
  works[0].wait();  // again: nothing

  const int n = comm->size();
  for (int i = 0; i < 4; ++i) {
    const double sum = n * (1.0 + i) + n * (n - 1) / 2.0;
    EXPECT_TRUE(at::equal(tensors[static_cast<size_t>(i)], at::full({kCount}, sum, at::kDouble)));
  }
}

void large_reductions_run_in_rounds(const CommPtr& comm) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < comm->size(); ++rank) counts.push_back(rank == 1 ? 3 : 1100003 + rank);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor in = values(comm->rank(), total(counts), dtype).clone();
    const int64_t own = counts[static_cast<size_t>(comm->rank())];
    const at::Tensor out = at::zeros({own}, in.options());
    const at::Tensor sum = reduced_values(ReduceOp::kSum, comm->size(), total(counts), dtype);

    comm->reduce_scatter(out, in, counts, ReduceOp::kSum, kSite).wait();
    EXPECT_TRUE(at::equal(out, sum.narrow(0, before(counts, comm->rank()), own)));
    comm->all_reduce(in, in, ReduceOp::kSum, kSite).wait();
    EXPECT_TRUE(at::equal(in, sum));
  }
}

void results_are_bit_equal(const CommPtr& comm) {
  for (const int64_t count : {100, 100003}) {
    const at::Tensor in = values(comm->rank(), count, at::kFloat) * 0.1;
    at::Tensor first;
    for (int run = 0; run < 3; ++run) {
      const at::Tensor out = at::zeros_like(in);
      comm->all_reduce(out, in, ReduceOp::kSum, kSite).wait();
      const at::Tensor all = at::zeros({comm->size(), count}, at::kFloat);
      const std::vector<int64_t> counts(static_cast<size_t>(comm->size()), count);
      comm->all_gather(all, out, counts, kSite).wait();
      for (int rank = 0; rank < comm->size(); ++rank) EXPECT_TRUE(at::equal(all[rank], out));
      if (run == 0) first = out;
      EXPECT_TRUE(at::equal(out, first));
    }
  }
}

void split_orders_by_key(const CommPtr& comm) {
  const int color = comm->rank() == 1 ? -1 : comm->rank() % 2;
  const CommPtr group = comm->split(color, -comm->rank(), "tp");
  if (color < 0) {
    EXPECT_EQ(group, nullptr);
    return;
  }
  std::vector<int64_t> expected;  // world ranks of this color, highest first
  for (int rank = comm->size() - 1; rank >= 0; --rank) {
    if (rank != 1 && rank % 2 == color) expected.push_back(rank);
  }
  EXPECT_EQ(group->name(), "tp");
  ASSERT_EQ(group->size(), static_cast<int>(expected.size()));
  const at::Tensor all = at::zeros({group->size()}, at::kLong);
  const std::vector<int64_t> ones(expected.size(), 1);
  group->all_gather(all, at::full({1}, comm->rank(), at::kLong), ones, kSite).wait();
  EXPECT_TRUE(at::equal(all, at::tensor(expected, at::kLong)));
  EXPECT_EQ(expected[static_cast<size_t>(group->rank())], comm->rank());
}

void parameters_keep_their_version(const CommPtr& comm) {
  at::Tensor leaf = at::full({5}, 1.0, at::kDouble).requires_grad_(true);
  const auto version = leaf._version();
  comm->all_reduce(leaf, leaf, ReduceOp::kSum, kSite).wait();
  EXPECT_TRUE(at::equal(leaf.detach(), at::full({5}, double(comm->size()), at::kDouble)));
  EXPECT_EQ(leaf._version(), version);
  EXPECT_TRUE(leaf.is_leaf());
}

void recorder_counts_exactly(const CommPtr& world) {
  const auto recorder = std::make_shared<Recorder>();
  const CommPtr comm = record(world, recorder);
  const CommPtr tp = comm->split(0, comm->rank(), "tp");
  const int n = comm->size();
  const std::vector<int64_t> counts(static_cast<size_t>(n), 3);
  const at::Tensor part = at::ones({3}, at::kFloat);
  const at::Tensor whole = at::ones({3 * n}, at::kFloat);
  tp->all_reduce(part, part, ReduceOp::kSum, kSite).wait();
  tp->all_gather(whole, part, counts, kSite).wait();
  comm->reduce_scatter(part, whole, counts, ReduceOp::kSum, kSite).wait();
  comm->broadcast(part, 0, kSite).wait();
  comm->barrier(kSite).wait();

  const auto records = recorder->records();
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[0].operation, "all_reduce");
  EXPECT_EQ(records[0].axis, "tp");
  EXPECT_EQ(records[0].module, "model.layers.0");
  EXPECT_EQ(records[0].value, "weight");
  EXPECT_EQ(records[0].phase, "forward");
  EXPECT_EQ(records[0].dtype, at::kFloat);
  EXPECT_EQ(records[0].ranks, n);
  EXPECT_EQ(recorder->count("", "tp"), 2);
  EXPECT_EQ(recorder->count("barrier"), 1);
  EXPECT_EQ(recorder->bytes("all_reduce", "tp"), 12);
  EXPECT_EQ(recorder->elements("all_gather"), 3);
  EXPECT_EQ(recorder->elements("reduce_scatter", world->name()), 3 * n);
  EXPECT_EQ(recorder->elements("broadcast"), comm->rank() == 0 ? 3 : 0);
  recorder->clear();
  EXPECT_EQ(recorder->count(), 0);
}

}  // namespace

std::vector<ContractCase> collective_cases() {
  return {{"all_reduce", all_reduce_adds},
          {"all_gather", all_gather_joins},
          {"reduce_scatter", reduce_scatter_adds},
          {"all_to_all", all_to_all_exchanges},
          {"broadcast_scatter_gather", roots_hand_out_and_collect},
          {"transposed", transposed_tensors_move_in_logical_order},
          {"send_recv", messages_keep_their_order},
          {"any_order", works_are_waited_for_in_any_order},
          {"rounds", large_reductions_run_in_rounds},
          {"bit_equal", results_are_bit_equal},
          {"split", split_orders_by_key},
          {"versions", parameters_keep_their_version},
          {"recorder", recorder_counts_exactly}};
}

}  // namespace shardproof
