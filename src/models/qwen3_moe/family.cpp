#include "models/qwen3_moe/family.h"

#include "models/decoder/family.h"
#include "models/decoder/weights.h"
#include "models/qwen3_moe/config.h"
#include "models/qwen3_moe/plan.h"

namespace shardproof {

ModelFamily qwen3_moe_family() {
  return decoder_family("qwen3_moe", parse_qwen3_moe_config, qwen3_moe_plans(),
                        plain_expert_weights());
}

}  // namespace shardproof
