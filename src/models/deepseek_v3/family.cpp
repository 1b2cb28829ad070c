#include "models/deepseek_v3/family.h"

#include "models/decoder/family.h"
#include "models/decoder/weights.h"
#include "models/deepseek_v3/config.h"
#include "models/deepseek_v3/plan.h"

namespace shardproof {

ModelFamily deepseek_v3_family() {
  return decoder_family("deepseek_v3", parse_deepseek_v3_config, deepseek_v3_plans(),
                        plain_expert_weights());
}

}  // namespace shardproof
