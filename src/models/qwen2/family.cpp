#include "models/qwen2/family.h"

#include "models/decoder/family.h"
#include "models/qwen2/config.h"
#include "models/qwen2/plan.h"

namespace shardproof {

ModelFamily qwen2_family() { return decoder_family("qwen2", parse_qwen2_config, qwen2_plans()); }

}  // namespace shardproof
