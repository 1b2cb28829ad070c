// Recorded runs that others are compared with: made once, kept on disk while the program runs.
#pragma once

#include "harness/launcher.h"
#include "harness/rounding.h"

namespace shardproof {

class OracleStore {
 public:
  // `folder` is removed with everything in it when the store goes, by the store that `owns` it.
  OracleStore(std::filesystem::path folder, bool owns);
  ~OracleStore();
  OracleStore(const OracleStore&) = delete;
  OracleStore& operator=(const OracleStore&) = delete;

  // The record of this run: the unsharded one, or one (DDP) whose first rank holds all parameters.
  // Made on the first call, by `launcher`, all of whose ranks must call; of a DDP run no outputs
  // are kept.
  const RunRecord& get(Launcher& launcher, const TrainingSpec& spec,
                       const DistributedConfig& config);

  // What rounding does to the unsharded run `spec`, whose truth is a record of this store. Made on
  // the first call, by `launcher`, all of whose ranks must call and some of which work.
  const RoundingErrors& rounding(Launcher& launcher, const TrainingSpec& spec,
                                 const RunRecord& truth);

 private:
  std::filesystem::path folder_;
  bool owns_;
  std::map<std::string, std::unique_ptr<RunRecord>> records_;  // by everything that decides the run
  std::map<const RunRecord*, RoundingErrors> rounding_;        // of each truth
};

}  // namespace shardproof
