// The plans that GPT-OSS ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans gpt_oss_plans();

}  // namespace shardproof
