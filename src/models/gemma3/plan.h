// The plans that Gemma 3 ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans gemma3_plans();

}  // namespace shardproof
