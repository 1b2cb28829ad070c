// Mistral as a family: model_type "mistral".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily mistral_family();

}  // namespace shardproof
