// What FSDP / DDP units send in one forward and backward (parallel/unit.h), without running them.
#pragma once

#include "comm/recording.h"
#include "nn/module.h"
#include "parallel/resolve.h"

namespace shardproof {

// Of one rank: parameters gathered before forward, again before backward where they were freed;
// gradients scattered, summed over replicas, and summed over copies of tensor parallelism. Every
// parameter that is trained is taken to get a gradient.
std::vector<Record> unit_traffic(Module& model, const ResolvedPlan& plan, int64_t rank,
                                 at::ScalarType dtype);

}  // namespace shardproof
