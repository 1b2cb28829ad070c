// Gemma 3 as a family: model_type "gemma3_text".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily gemma3_family();

}  // namespace shardproof
