// The plans that Qwen 3 MoE ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans qwen3_moe_plans();

}  // namespace shardproof
