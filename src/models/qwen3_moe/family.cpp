#include "models/qwen3_moe/family.h"

#include "models/decoder/family.h"
#include "models/qwen3_moe/config.h"
#include "models/qwen3_moe/plan.h"
#include "models/qwen3_moe/weights.h"

namespace shardproof {

ModelFamily qwen3_moe_family() {
  return decoder_family("qwen3_moe", parse_qwen3_moe_config, qwen3_moe_plans(),
                        qwen3_moe_weights());
}

}  // namespace shardproof
