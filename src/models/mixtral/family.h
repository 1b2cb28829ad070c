// Mixtral as a family: model_type "mixtral".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily mixtral_family();

}  // namespace shardproof
