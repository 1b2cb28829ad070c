#include "models/qwen2/plan.h"

#include "models/decoder/plan.h"

namespace shardproof {

ModelPlans qwen2_plans() { return decoder_plans(); }

}  // namespace shardproof
