// Qwen 3 MoE as a family: model_type "qwen3_moe".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily qwen3_moe_family();

}  // namespace shardproof
