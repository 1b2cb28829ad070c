// The plans that Mixtral ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans mixtral_plans();

}  // namespace shardproof
