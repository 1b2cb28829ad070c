#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "comm/contract_cases.h"

namespace shardproof {

namespace {

using namespace std::chrono_literals;

const Site kSite{"model.norm", "hidden", "backward"};

double add_up(const CommPtr& comm) {
  const at::Tensor one = at::ones({1}, at::kDouble);
  comm->all_reduce(one, one, ReduceOp::kSum, kSite).wait();
  return one.item<double>();
}

void abort_wakes_everyone(const CommPtr& world) {
  const int culprit = world->size() > 1 ? 1 : 0;
  const CommPtr domain = world->new_domain("broken");
  const CommPtr part = domain->split(0, -domain->rank(), "part");
  if (world->rank() == culprit) {
    std::this_thread::sleep_for(50ms);  // the others wait by now
    domain->abort("no such tensor");
  }
  const CommPtr on = world->rank() % 2 == 0 ? domain : part;
  for (int again = 0; again < 2; ++again) {
    try {
      on->barrier(kSite).wait();
      ADD_FAILURE() << "a barrier in an aborted domain returned";
    } catch (const AbortedError& error) {
      EXPECT_EQ(error.rank(), culprit);
      EXPECT_EQ(error.reason(), "no such tensor");
    }
  }
  const CommPtr fresh = world->new_domain("fresh");
  EXPECT_EQ(add_up(fresh), world->size());
}

// Messages half sent in a broken domain, with their buffers gone, must not disturb the next one.
void broken_exchanges_leave_no_trace(const CommPtr& world) {
  const int culprit = world->size() - 1;
  for (int round = 0; round < 3; ++round) {
    const CommPtr domain = world->new_domain("broken");
    const std::vector<int64_t> counts(static_cast<size_t>(world->size()), 300000);
    const at::Tensor in = at::ones({300000}, at::kDouble);
    const at::Tensor out = at::zeros({300000 * world->size()}, at::kDouble);
    if (world->rank() == culprit) {
      const Work started = domain->all_gather(out, in, counts, kSite);
      domain->abort("changed its mind");
    } else {
      EXPECT_THROW(
          {
            domain->all_gather(out, in, counts, kSite).wait();
            domain->barrier(kSite).wait();
          },
          AbortedError);
    }
    const CommPtr fresh = world->new_domain("fresh");
    EXPECT_EQ(add_up(fresh), world->size());
  }
}

void silent_rank_is_named(const CommPtr& world) {
  if (world->size() == 1) return;
  const int silent = world->size() - 1;
  const CommPtr domain = world->new_domain("domain");
  domain->set_deadline(300ms);
  domain->barrier(kSite).wait();
  if (world->rank() == silent) {
    std::this_thread::sleep_for(600ms);
  } else {
    try {
      domain->barrier(kSite).wait();
      ADD_FAILURE() << "a barrier without rank " << silent << " returned";
    } catch (const TimeoutError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("no answer from rank " + std::to_string(silent) + " "), message.npos)
          << message;
      for (const char* part : {"barrier on 'domain'", "model.norm", "hidden", "backward"}) {
        EXPECT_NE(message.find(part), message.npos) << message;
      }
    }
  }
  EXPECT_EQ(add_up(world), world->size());
}

void announcement_puts_deadlines_off(const CommPtr& world) {
  const int busy = world->size() - 1;
  const CommPtr domain = world->new_domain("domain");
  domain->set_deadline(400ms);
  domain->barrier(kSite).wait();
  if (world->rank() == busy) {
    domain->announce(5000ms, "writing a checkpoint");
    std::this_thread::sleep_for(700ms);
  }
  EXPECT_EQ(add_up(domain), world->size());
  world->barrier(kSite).wait();
}

void wrong_calls_are_refused(const CommPtr& world) {
  const at::Tensor two = at::ones({2}, at::kDouble);
  const std::vector<int64_t> counts(static_cast<size_t>(world->size()), 3);
  EXPECT_THROW(world->all_gather(two, two, counts, kSite), ContractError);
  EXPECT_THROW(world->all_reduce(two, at::ones({2}, at::kFloat), ReduceOp::kSum, kSite),
               ContractError);
  EXPECT_THROW(world->broadcast(two, world->size(), kSite), ContractError);
  EXPECT_THROW(world->send(two, 0, -1, kSite), ContractError);
  EXPECT_EQ(add_up(world), world->size());
}

void sizes_that_differ_are_noticed(const CommPtr& world) {
  if (world->size() == 1) return;
  const CommPtr domain = world->new_domain("domain");
  domain->set_deadline(5s);
  const at::Tensor tensor = at::ones({4 + domain->rank()}, at::kDouble);
  EXPECT_THROW(domain->all_reduce(tensor, tensor, ReduceOp::kSum, kSite).wait(), CommError);
  domain->abort("sizes differ");
  EXPECT_EQ(add_up(world), world->size());
}

}  // namespace

std::vector<ContractCase> failure_cases() {
  return {{"abort", abort_wakes_everyone},
          {"broken_exchanges", broken_exchanges_leave_no_trace},
          {"silent_rank", silent_rank_is_named},
          {"announce", announcement_puts_deadlines_off},
          {"wrong_calls", wrong_calls_are_refused},
          {"different_sizes", sizes_that_differ_are_noticed}};
}

std::vector<ContractCase> contract_cases() {
  auto cases = collective_cases();
  for (const ContractCase& one : failure_cases()) cases.push_back(one);
  return cases;
}

}  // namespace shardproof
