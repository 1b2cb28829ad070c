// Phi 3 as a family: model_type "phi3".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily phi3_family();

}  // namespace shardproof
