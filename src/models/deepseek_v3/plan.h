// The plans that DeepSeek-V3 ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans deepseek_v3_plans();

}  // namespace shardproof
