#include "models/mixtral/family.h"

#include "models/decoder/family.h"
#include "models/mixtral/config.h"
#include "models/mixtral/plan.h"
#include "models/mixtral/weights.h"

namespace shardproof {

ModelFamily mixtral_family() {
  return decoder_family("mixtral", parse_mixtral_config, mixtral_plans(), mixtral_weights());
}

}  // namespace shardproof
