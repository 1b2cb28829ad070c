// The plans that Phi 3 ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans phi3_plans();

}  // namespace shardproof
