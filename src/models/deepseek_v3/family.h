// DeepSeek-V3 as a family: model_type "deepseek_v3".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily deepseek_v3_family();

}  // namespace shardproof
