#include "models/gpt_oss/family.h"

#include "models/decoder/family.h"
#include "models/gpt_oss/config.h"
#include "models/gpt_oss/plan.h"
#include "models/gpt_oss/weights.h"

namespace shardproof {

ModelFamily gpt_oss_family() {
  return decoder_family("gpt_oss", parse_gpt_oss_config, gpt_oss_plans(), gpt_oss_weights());
}

}  // namespace shardproof
