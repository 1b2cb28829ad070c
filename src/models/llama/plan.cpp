#include "models/llama/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans llama_plans() { return decoder_plans(); }

}  // namespace shardproof
