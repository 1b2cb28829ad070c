// The plans that Mistral ships.
#pragma once

#include "parallel/plan.h"

namespace shardproof {

ModelPlans mistral_plans();

}  // namespace shardproof
