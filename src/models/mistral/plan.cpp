#include "models/mistral/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans mistral_plans() { return decoder_plans(); }

}  // namespace shardproof
