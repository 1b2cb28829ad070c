#include "models/phi3/family.h"

#include "models/decoder/family.h"
#include "models/phi3/config.h"
#include "models/phi3/plan.h"

namespace shardproof {

ModelFamily phi3_family() { return decoder_family("phi3", parse_phi3_config, phi3_plans()); }

}  // namespace shardproof
