#include "models/mistral/family.h"

#include "models/decoder/family.h"
#include "models/mistral/config.h"
#include "models/mistral/plan.h"

namespace shardproof {

ModelFamily mistral_family() {
  return decoder_family("mistral", parse_mistral_config, mistral_plans());
}

}  // namespace shardproof
