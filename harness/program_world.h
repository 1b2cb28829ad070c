// The ranks that a program of this project runs on: those that mpirun started, or this process
// alone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace shardproof {

class MpiEnvironment;

class ProgramWorld {
 public:
  // MPI is initialised only where mpirun (or another launcher of Open MPI) started the process.
  ProgramWorld(int& argc, char**& argv);
  ~ProgramWorld();
  ProgramWorld(const ProgramWorld&) = delete;
  ProgramWorld& operator=(const ProgramWorld&) = delete;

  // For agreeing on verdicts and for nothing else: no test or scenario ever gets it.
  Communicator& control() const { return *control_; }
  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }
  // Collective. All ranks in an abort domain of their own, made from control().
  CommPtr fresh_domain(const std::string& name) const { return control_->new_domain(name); }

  // Collective: the largest of all ranks' values.
  int64_t agreed_max(int64_t value) const;
  // Collective: runs `work` on every rank; where it throws InputError on any, throws the one of the
  // lowest such rank on all.
  void agreed(const std::function<void()>& work) const;

  // The fatal path: says why on stderr, flushes, and ends all ranks at once with `status`.
  [[noreturn]] void break_off(const std::string& reason, int status = 3) const;

 private:
  std::unique_ptr<MpiEnvironment> environment_;  // none without MPI
  CommPtr control_;
};

}  // namespace shardproof
