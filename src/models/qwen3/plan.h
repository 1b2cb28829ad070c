// The plans that Qwen 3 ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans qwen3_plans();

}  // namespace shardproof
