#include "models/deepseek_v3/family.h"

#include "models/decoder/family.h"
#include "models/deepseek_v3/config.h"
#include "models/deepseek_v3/plan.h"
#include "models/deepseek_v3/weights.h"

namespace shardproof {

ModelFamily deepseek_v3_family() {
  return decoder_family("deepseek_v3", parse_deepseek_v3_config, deepseek_v3_plans(),
                        deepseek_v3_weights());
}

}  // namespace shardproof
