// Qwen 3 as a family: model_type "qwen3".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily qwen3_family();

}  // namespace shardproof
