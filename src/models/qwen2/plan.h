// The plans that Qwen 2 ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans qwen2_plans();

}  // namespace shardproof
