#include "models/gemma3/family.h"

#include "models/decoder/family.h"
#include "models/gemma3/config.h"
#include "models/gemma3/plan.h"

namespace shardproof {

ModelFamily gemma3_family() {
  return decoder_family("gemma3_text", parse_gemma3_config, gemma3_plans());
}

}  // namespace shardproof
