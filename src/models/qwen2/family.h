// Qwen 2 as a family: model_type "qwen2".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily qwen2_family();

}  // namespace shardproof
