// The plans that Llama ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans llama_plans();

}  // namespace shardproof
