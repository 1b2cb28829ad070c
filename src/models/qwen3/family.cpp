#include "models/qwen3/family.h"

#include "models/decoder/family.h"
#include "models/qwen3/config.h"
#include "models/qwen3/plan.h"

namespace shardproof {

ModelFamily qwen3_family() { return decoder_family("qwen3", parse_qwen3_config, qwen3_plans()); }

}  // namespace shardproof
