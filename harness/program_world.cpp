#include "harness/program_world.h"

#include <mpi.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "comm/mpi/mpi_world.h"
#include "comm/self.h"

namespace shardproof {
namespace {

bool started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

ProgramWorld::ProgramWorld(int& argc, char**& argv) {
  if (started_by_mpirun()) {
    environment_ = std::make_unique<MpiEnvironment>(argc, argv);
    control_ = make_mpi_world("control");
  } else {
    control_ = make_self_communicator("control");
  }
}

// Communicators go before MPI does.
ProgramWorld::~ProgramWorld() { control_.reset(); }

int64_t ProgramWorld::agreed_max(int64_t value) const {
  const at::Tensor tensor = at::tensor({value});
  control_->all_reduce(tensor, tensor, ReduceOp::kMax, {"", "status", "agree"}).wait();
  return tensor.item<int64_t>();
}

void ProgramWorld::agreed(const std::function<void()>& work) const {
  std::string problem;
  try {
    work();
  } catch (const InputError& error) {
    problem = error.what();
  }
  // The lowest rank with a problem has the largest of these.
  const int64_t urgency = agreed_max(problem.empty() ? 0 : size() - rank());
  if (urgency == 0) return;
  const int teller = static_cast<int>(size() - urgency);
  const Site site{"", "input problem", "agree"};
  const at::Tensor length = at::tensor({static_cast<int64_t>(problem.size())});
  control_->broadcast(length, teller, site).wait();
  const at::Tensor text = at::empty({length.item<int64_t>()}, at::kByte);
  if (rank() == teller) std::copy(problem.begin(), problem.end(), text.mutable_data_ptr<uint8_t>());
  control_->broadcast(text, teller, site).wait();
  const auto* bytes = text.const_data_ptr<uint8_t>();
  throw InputError(std::string(bytes, bytes + text.numel()));
}

void ProgramWorld::break_off(const std::string& reason, int status) const {
  std::cout.flush();
  std::cerr << "shardproof: " << reason << '\n' << std::flush;
  if (environment_) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace shardproof
